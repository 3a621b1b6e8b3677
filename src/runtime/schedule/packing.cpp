#include "runtime/schedule/packing.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

namespace headroom::detail {
namespace {

using Order = std::vector<std::size_t>;

bool conflict(const PackItem& a, const PackItem& b) {
  return a.begin < b.end && b.begin < a.end && !(a.serial && b.serial);
}

Order by_begin(const std::vector<PackItem>& items) {
  Order order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].begin < items[b].begin; });
  return order;
}

/// Of each item, those that it conflicts with.
std::vector<Order> conflicts_of(const std::vector<PackItem>& items) {
  std::vector<Order> conflicts(items.size());
  Order live;
  for (const std::size_t item : by_begin(items)) {
    std::erase_if(live, [&](std::size_t other) { return items[other].end <= items[item].begin; });
    for (const std::size_t other : live) {
      if (!conflict(items[item], items[other])) continue;
      conflicts[item].push_back(other);
      conflicts[other].push_back(item);
    }
    live.push_back(item);
  }
  return conflicts;
}

enum class Fit { lowest, tightest };

class Packer {
 public:
  explicit Packer(const std::vector<PackItem>& items) : items_(items), conflicts_(conflicts_of(items)) {}

  [[nodiscard]] std::size_t conflicts() const {
    return std::accumulate(conflicts_.begin(), conflicts_.end(), items_.size(),
                           [](std::size_t sum, const Order& each) { return sum + each.size(); });
  }

  /// Gives each item in turn the lowest gap, or the tightest, that its conflicts leave.
  Packing place(const Order& order, Fit fit) {
    Packing packing{std::vector<std::size_t>(items_.size(), 0), 0};
    placed_.assign(items_.size(), 0);
    for (const std::size_t item : order) {
      packing.offsets[item] = find_gap(item, fit, packing.offsets);
      placed_[item] = 1;
      packing.high_water_bytes = std::max(packing.high_water_bytes, packing.offsets[item] + items_[item].bytes);
    }
    return packing;
  }

 private:
  std::size_t find_gap(std::size_t item, Fit fit, const std::vector<std::size_t>& offsets) {
    taken_.clear();
    for (const std::size_t other : conflicts_[item]) {
      if (placed_[other] != 0) taken_.push_back({offsets[other], offsets[other] + items_[other].bytes});
    }
    std::sort(taken_.begin(), taken_.end());
    std::size_t end = 0, best = 0, best_gap = SIZE_MAX;
    bool found = false;
    for (const auto& range : taken_) {
      const std::size_t gap = range.first > end ? range.first - end : 0;
      if (gap >= items_[item].bytes && gap < best_gap) {
        if (fit == Fit::lowest) return end;
        best = end;
        best_gap = gap;
        found = true;
      }
      end = std::max(end, range.second);
    }
    return found ? best : end;
  }

  const std::vector<PackItem>& items_;
  std::vector<Order> conflicts_;
  std::vector<char> placed_;
  std::vector<std::pair<std::size_t, std::size_t>> taken_;
};

std::vector<Order> greedy_orders(const std::vector<PackItem>& items) {
  const Order begin = by_begin(items);
  const auto sorted = [&](auto key) {
    Order order = begin;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(items[a]) > key(items[b]); });
    return order;
  };
  return {sorted([](const PackItem& item) { return std::tuple(item.bytes, item.end - item.begin); }),
          sorted([](const PackItem& item) { return item.bytes; }), begin,
          sorted([](const PackItem& item) { return std::tuple(item.end - item.begin, item.bytes); }),
          sorted([](const PackItem& item) { return item.bytes * (item.end - item.begin); })};
}

/// Those that reach beyond `load` come first in the next try.
Order promote(const Order& order, const std::vector<PackItem>& items, const Packing& packing, std::size_t load) {
  Order promoted = order;
  std::stable_partition(promoted.begin(), promoted.end(),
                        [&](std::size_t item) { return packing.offsets[item] + items[item].bytes > load; });
  return promoted;
}

}  // namespace

std::size_t largest_load(const std::vector<PackItem>& items) {
  const Order order = by_begin(items);
  std::multiset<std::pair<std::size_t, std::size_t>> live, serial;  // end, bytes
  std::multiset<std::size_t> serial_bytes;
  std::size_t sum = 0, largest = 0;
  for (const std::size_t i : order) {
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

Packing pack(const std::vector<PackItem>& items) {
  constexpr std::size_t kWork = 4'000'000, kMostTries = 60;  // Conflicts looked at, in all tries.
  Packer packer(items);
  const std::size_t load = largest_load(items);
  const std::size_t tries = std::clamp<std::size_t>(kWork / (packer.conflicts() + 1), 2, kMostTries);
  Packing best;
  best.high_water_bytes = SIZE_MAX;
  std::size_t tried = 0;
  for (Order order : greedy_orders(items)) {
    for (const Fit fit : {Fit::lowest, Fit::tightest}) {
      for (std::size_t i = 0; i < kMostTries / 10 && tried < tries; ++i, ++tried) {
        Packing packing = packer.place(order, fit);
        if (packing.high_water_bytes <= load) return packing;
        order = promote(order, items, packing, load);
        if (packing.high_water_bytes < best.high_water_bytes) best = std::move(packing);
      }
    }
  }
  return best;
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
  for (const std::size_t item : by_begin(items)) {
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
