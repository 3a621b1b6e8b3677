#include "collectives/rank_order_sum.hpp"

#include "runtime/core/bf16.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace headroom::detail {
namespace {

constexpr std::size_t kMostAtOnce = 8;

// What is summed, of an element as it is stored: bf16 (as its bits) in f32.
float widened(float value) noexcept { return value; }
double widened(double value) noexcept { return value; }
float widened(std::uint16_t bits) noexcept { return from_bf16(bits); }

void store(float sum, float& out) noexcept { out = sum; }
void store(double sum, double& out) noexcept { out = sum; }
void store(float sum, std::uint16_t& out) noexcept { out = to_bf16(sum); }

template <class T, std::size_t... Rank>
void sum_fixed(const std::byte* const* chunks, T* out, std::size_t numel, std::index_sequence<Rank...>) noexcept {
  const std::array<const T*, sizeof...(Rank)> in{reinterpret_cast<const T*>(chunks[Rank])...};
  // `out` is one of the inputs or apart from all of them, so no iteration reads what another one wrote.
#pragma GCC ivdep
  for (std::size_t i = 0; i < numel; ++i) store((... + widened(in[Rank][i])), out[i]);
}

template <class T>
void sum_some(std::span<const std::byte* const> chunks, T* out, std::size_t numel) noexcept {
  const std::byte* const* const in = chunks.data();
  switch (chunks.size()) {
    case 1: return sum_fixed(in, out, numel, std::make_index_sequence<1>{});
    case 2: return sum_fixed(in, out, numel, std::make_index_sequence<2>{});
    case 3: return sum_fixed(in, out, numel, std::make_index_sequence<3>{});
    case 4: return sum_fixed(in, out, numel, std::make_index_sequence<4>{});
    case 5: return sum_fixed(in, out, numel, std::make_index_sequence<5>{});
    case 6: return sum_fixed(in, out, numel, std::make_index_sequence<6>{});
    case 7: return sum_fixed(in, out, numel, std::make_index_sequence<7>{});
    default: return sum_fixed(in, out, numel, std::make_index_sequence<kMostAtOnce>{});
  }
}

/// More ranks than registers: block by block through a buffer, because `out` may be a chunk that is still to be read.
template <class T>
void sum_many(std::span<const std::byte* const> chunks, T* out, std::size_t numel) noexcept {
  std::array<T, 1024> block;
  for (std::size_t begin = 0; begin < numel; begin += block.size()) {
    const std::size_t count = std::min(block.size(), numel - begin);
    std::array<const std::byte*, kMostAtOnce> group{};
    std::size_t summed = 0, filled = 0;
    while (summed < chunks.size()) {
      while (filled < kMostAtOnce && summed < chunks.size()) group[filled++] = chunks[summed++] + begin * sizeof(T);
      sum_some(std::span<const std::byte* const>(group.data(), filled), block.data(), count);
      group[0] = reinterpret_cast<const std::byte*>(block.data());
      filled = 1;
    }
    std::copy_n(block.data(), count, out + begin);
  }
}

/// The same in f32, because a sum must be rounded once.
void sum_many(std::span<const std::byte* const> chunks, std::uint16_t* out, std::size_t numel) noexcept {
  std::array<float, 1024> block;
  for (std::size_t begin = 0; begin < numel; begin += block.size()) {
    const std::size_t count = std::min(block.size(), numel - begin);
    const auto* in = reinterpret_cast<const std::uint16_t*>(chunks.front()) + begin;
    for (std::size_t i = 0; i < count; ++i) block[i] = from_bf16(in[i]);
    for (const std::byte* const chunk : chunks.subspan(1)) {
      in = reinterpret_cast<const std::uint16_t*>(chunk) + begin;
      for (std::size_t i = 0; i < count; ++i) block[i] += from_bf16(in[i]);
    }
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = to_bf16(block[i]);
  }
}

template <class T>
void sum(std::span<const std::byte* const> chunks, T* out, std::size_t numel) noexcept {
  if (chunks.size() <= kMostAtOnce) return sum_some(chunks, out, numel);
  sum_many(chunks, out, numel);
}

}  // namespace

void sum_in_rank_order(DType dtype, std::span<const std::byte* const> chunks, std::byte* out,
                       std::size_t numel) noexcept {
  if (numel == 0 || (chunks.size() == 1 && chunks.front() == out)) return;
  if (dtype == DType::f64) return sum(chunks, reinterpret_cast<double*>(out), numel);
  if (dtype == DType::bf16) return sum(chunks, reinterpret_cast<std::uint16_t*>(out), numel);
  sum(chunks, reinterpret_cast<float*>(out), numel);
}

}  // namespace headroom::detail
