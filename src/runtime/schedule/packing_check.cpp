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
  std::multiset<std::pair<std::size_t, std::size_t>> live, serial;  // end, bytes
  std::multiset<std::size_t> serial_bytes;
  std::size_t sum = 0, largest = 0;
  for (const std::size_t i : order_of_begin(items)) {
    for (; !live.empty() && live.begin()->first <= items[i].begin; live.erase(live.begin())) {
      sum -= live.begin()->second;
    }
    for (; !serial.empty() && serial.begin()->first <= items[i].begin; serial.erase(serial.begin())) {
      serial_bytes.erase(serial_bytes.find(serial.begin()->second));
    }
    if (items[i].serial) {
      serial.insert({items[i].end, items[i].bytes});
      serial_bytes.insert(items[i].bytes);
    } else {
      live.insert({items[i].end, items[i].bytes});
      sum += items[i].bytes;
    }
    largest = std::max(largest, sum + (serial_bytes.empty() ? 0 : *serial_bytes.rbegin()));
  }
  return largest;
}

void verify_packing(const std::vector<PackItem>& items, const Packing& packing) {
  using Range = std::tuple<std::size_t, std::size_t, std::size_t>;  // offset, end offset, item
  std::set<Range> live, serial;
  const auto overlaps = [](const std::set<Range>& ranges, std::size_t from, std::size_t to) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return std::get<0>(range) < to && from < std::get<1>(range); });
  };
  const auto over = [&](std::size_t now) {
    return [&, now](const Range& range) { return items[std::get<2>(range)].end <= now; };
  };
  for (const std::size_t item : order_of_begin(items)) {
    std::erase_if(live, over(items[item].begin));
    std::erase_if(serial, over(items[item].begin));
    const std::size_t from = packing.offsets[item], to = from + items[item].bytes;
    if (to > packing.high_water_bytes || overlaps(live, from, to) ||
        (!items[item].serial && overlaps(serial, from, to))) {
      throw std::logic_error("pack: item " + std::to_string(item) + " overlaps another in bytes and time");
    }
    (items[item].serial ? serial : live).insert({from, to, item});
  }
}

}  // namespace headroom::detail
