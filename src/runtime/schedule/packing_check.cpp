#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "runtime/schedule/packing.hpp"

namespace headroom::detail {

std::vector<std::size_t> order_of_begin(const std::vector<PackItem>& items) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].begin < items[b].begin; });
  return order;
}

std::size_t largest_load(const std::vector<PackItem>& items) {
  std::multiset<std::pair<std::size_t, std::size_t>> live;  // end, bytes
  std::size_t sum = 0, largest = 0;
  for (const std::size_t i : order_of_begin(items)) {
    for (; !live.empty() && live.begin()->first <= items[i].begin; live.erase(live.begin())) {
      sum -= live.begin()->second;
    }
    live.insert({items[i].end, items[i].bytes});
    sum += items[i].bytes;
    largest = std::max(largest, sum);
  }
  return largest;
}

void verify_packing(const std::vector<PackItem>& items, const Packing& packing) {
  using Range = std::tuple<std::size_t, std::size_t, std::size_t>;  // offset, end offset, item
  std::set<Range> live;
  for (const std::size_t item : order_of_begin(items)) {
    std::erase_if(live, [&](const Range& range) { return items[std::get<2>(range)].end <= items[item].begin; });
    const std::size_t from = packing.offsets[item], to = from + items[item].bytes;
    const bool overlaps = std::any_of(live.begin(), live.end(), [&](const Range& range) {
      return std::get<0>(range) < to && from < std::get<1>(range);
    });
    if (to > packing.high_water_bytes || overlaps) {
      throw std::logic_error("pack: item " + std::to_string(item) + " overlaps another in bytes and time");
    }
    live.insert({from, to, item});
  }
}

}  // namespace headroom::detail
