#include "runtime/core/crc32c_table.hpp"

#include <headroom/crc32c.hpp>

#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace headroom {

namespace {

#if defined(__x86_64__)

bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes,
                                                               std::uint32_t state) noexcept {
  std::uint64_t wide = state;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = _mm_crc32_u64(wide, word);
    bytes = bytes.subspan(sizeof word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) state = _mm_crc32_u8(state, std::to_integer<std::uint8_t>(byte));
  return state;
}

#else

bool has_instruction() noexcept { return false; }

std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t state) noexcept {
  return detail::crc32c_by_table(bytes, state);
}

#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return ~(has_instruction() ? by_instruction(bytes, ~crc) : detail::crc32c_by_table(bytes, ~crc));
}

}  // namespace headroom
