#include "kernels/host.hpp"
#include "runtime/core/bf16.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headroom::kernels::host {

namespace {

// Elements on the stack between reading and writing: source and destination may be one memory, seen as two types.
constexpr std::int64_t kBlock = 512;

std::size_t bytes_of(std::int64_t count, std::size_t element_bytes) {
  return static_cast<std::size_t>(count) * element_bytes;
}

}  // namespace

// Ascending: what is written ends where the next block's source begins, or before.
void narrow(const std::byte* source, std::byte* destination, std::int64_t count) {
  std::array<float, kBlock> wide;
  std::array<std::uint16_t, kBlock> half;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    std::memcpy(wide.data(), source + begin * 4, bytes_of(size, 4));
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) half[i] = detail::to_bf16(wide[i]);
    std::memcpy(destination + begin * 2, half.data(), bytes_of(size, 2));
  }
}

// Descending: what is written begins where the source of the blocks still to come ends, or beyond.
void widen(const std::byte* source, std::byte* destination, std::int64_t count) {
  std::array<std::uint16_t, kBlock> half;
  std::array<float, kBlock> wide;
  for (std::int64_t end = count; end > 0;) {
    const std::int64_t size = (end - 1) % kBlock + 1;
    end -= size;
    std::memcpy(half.data(), source + end * 2, bytes_of(size, 2));
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) wide[i] = detail::from_bf16(half[i]);
    std::memcpy(destination + end * 4, wide.data(), bytes_of(size, 4));
  }
}

}  // namespace headroom::kernels::host
