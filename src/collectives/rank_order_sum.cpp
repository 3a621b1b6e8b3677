#include "collectives/rank_order_sum.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace headroom::detail {
namespace {

constexpr std::size_t kMostAtOnce = 8;

template <class T, std::size_t... Rank>
void sum_fixed(const std::byte* const* chunks, T* out, std::size_t numel, std::index_sequence<Rank...>) noexcept {
  const std::array<const T*, sizeof...(Rank)> in{reinterpret_cast<const T*>(chunks[Rank])...};
  // `out` is one of the inputs or apart from all of them, so no iteration reads what another one wrote.
#pragma GCC ivdep
  for (std::size_t i = 0; i < numel; ++i) out[i] = (... + in[Rank][i]);
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

template <class T>
void sum(std::span<const std::byte* const> chunks, std::byte* out, std::size_t numel) noexcept {
  const std::size_t first = std::min(chunks.size(), kMostAtOnce);
  sum_some(chunks.first(first), reinterpret_cast<T*>(out), numel);
  for (std::size_t next = first; next < chunks.size(); next += kMostAtOnce - 1) {
    std::array<const std::byte*, kMostAtOnce> group{out};  // The sum so far, then the next ranks.
    const auto more = chunks.subspan(next, std::min(chunks.size() - next, kMostAtOnce - 1));
    std::copy(more.begin(), more.end(), group.begin() + 1);
    sum_some(std::span<const std::byte* const>(group.data(), 1 + more.size()), reinterpret_cast<T*>(out), numel);
  }
}

}  // namespace

void sum_in_rank_order(DType dtype, std::span<const std::byte* const> chunks, std::byte* out,
                       std::size_t numel) noexcept {
  if (numel == 0 || (chunks.size() == 1 && chunks.front() == out)) return;
  if (dtype == DType::f64) {
    sum<double>(chunks, out, numel);
  } else {
    sum<float>(chunks, out, numel);
  }
}

}  // namespace headroom::detail
