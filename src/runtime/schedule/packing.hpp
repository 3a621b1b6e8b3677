#pragma once

#include <cstddef>
#include <vector>

namespace headroom::detail {

/// A buffer to place: needed over [begin, end) of some order.
struct PackItem {
  std::size_t begin = 0, end = 0, bytes = 0;
};

struct Packing {
  std::vector<std::size_t> offsets;  ///< Of each item.
  std::size_t high_water_bytes = 0;
};

/// Indices of the items, sorted by begin.
[[nodiscard]] std::vector<std::size_t> order_of_begin(const std::vector<PackItem>& items);

/// The largest live sum: no packing is smaller.
[[nodiscard]] std::size_t largest_load(const std::vector<PackItem>& items);

/// Places the items by several greedy orders, then a bounded local search, and keeps the best; deterministic.
[[nodiscard]] Packing pack(const std::vector<PackItem>& items);

/// Sweeps over the items in order of begin. Throws: std::logic_error where two that conflict overlap in bytes.
void verify_packing(const std::vector<PackItem>& items, const Packing& packing);

}  // namespace headroom::detail
