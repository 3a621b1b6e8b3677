#include "runtime/schedule/packing.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

namespace headroom::detail {
namespace {

using Order = std::vector<std::size_t>;  // Of indices of items.

constexpr std::size_t kWork = 6'000'000;  // Conflicts looked at in all tries: about 0.1 s.
constexpr std::size_t kPromotions = 6;    // Tries of one greedy order.

/// Of each item, those that may not overlap it.
std::vector<Order> conflicts_of(const std::vector<PackItem>& items) {
  std::vector<Order> conflicts(items.size());
  Order live;
  for (const std::size_t item : order_of_begin(items)) {
    std::erase_if(live, [&](std::size_t other) { return items[other].end <= items[item].begin; });
    for (const std::size_t other : live) {
      conflicts[item].push_back(other);
      conflicts[other].push_back(item);
    }
    live.push_back(item);
  }
  return conflicts;
}

enum class Fit { lowest, tightest };

/// Places items one by one into the gaps that their conflicts leave.
class Packer {
 public:
  explicit Packer(const std::vector<PackItem>& items) : items_(items), conflicts_(conflicts_of(items)) {
    work_ = std::accumulate(conflicts_.begin(), conflicts_.end(), items.size(),
                            [](std::size_t sum, const Order& each) { return sum + each.size(); });
  }

  [[nodiscard]] const Order& conflicts(std::size_t item) const { return conflicts_[item]; }
  [[nodiscard]] std::size_t work() const { return work_; }  ///< Of one placement.

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
      if (placed_[other] != 0) taken_.emplace_back(offsets[other], offsets[other] + items_[other].bytes);
    }
    std::sort(taken_.begin(), taken_.end());
    std::size_t end = 0, best = 0, best_gap = SIZE_MAX;
    for (const auto& range : taken_) {
      const std::size_t gap = range.first > end ? range.first - end : 0;
      if (gap >= items_[item].bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
        if (fit == Fit::lowest) break;
      }
      end = std::max(end, range.second);
    }
    return best_gap == SIZE_MAX ? end : best;
  }

  const std::vector<PackItem>& items_;
  std::vector<Order> conflicts_;
  std::size_t work_ = 0;
  std::vector<char> placed_;
  std::vector<std::pair<std::size_t, std::size_t>> taken_;
};

std::vector<Order> greedy_orders(const std::vector<PackItem>& items) {
  const Order begin = order_of_begin(items);
  const auto sorted = [&](auto key) {
    Order order = begin;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(items[a]) > key(items[b]); });
    return order;
  };
  return {sorted([](const PackItem& item) { return item.bytes; }),
          sorted([](const PackItem& item) { return std::tuple(item.bytes, item.end - item.begin); }), begin,
          sorted([](const PackItem& item) { return std::tuple(item.end - item.begin, item.bytes); }),
          sorted([](const PackItem& item) { return item.bytes * (item.end - item.begin); })};
}

class Search {
 public:
  explicit Search(const std::vector<PackItem>& items)
      : items_(items), packer_(items), load_(largest_load(items)), tries_(kWork / (packer_.work() + 1)) {}

  Packing run() {
    for (const Order& order : greedy_orders(items_)) {
      for (const Fit fit : {Fit::lowest, Fit::tightest}) promote(order, fit);
    }
    if (!done()) climb();
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool done() const {
    return !best_order_.empty() && (tried_ >= tries_ || best_.high_water_bytes <= load_);
  }

  Packing attempt(const Order& order, Fit fit) {
    ++tried_;
    Packing packing = packer_.place(order, fit);
    if (best_order_.empty() || packing.high_water_bytes < best_.high_water_bytes) {
      best_ = packing;
      best_order_ = order;
      best_fit_ = fit;
    }
    return packing;
  }

  [[nodiscard]] bool beyond_load(const Packing& packing, std::size_t item) const {
    return packing.offsets[item] + items_[item].bytes > load_;
  }

  /// Tries an order again with what reached beyond the load placed first.
  void promote(Order order, Fit fit) {
    for (std::size_t i = 0; i < kPromotions && !done(); ++i) {
      const Packing packing = attempt(order, fit);
      std::stable_partition(order.begin(), order.end(), [&](std::size_t item) { return beyond_load(packing, item); });
    }
  }

  /// From the best order, moves items about the peak and keeps what is no worse.
  void climb() {
    std::mt19937_64 random(1);  // Fixed: every rank must find the same packing.
    Order order = best_order_;
    Packing current = best_;
    while (!done()) {
      Order next = order;
      Order peak;
      for (std::size_t item = 0; item < items_.size(); ++item) {
        if (beyond_load(current, item)) peak.push_back(item);
      }
      const std::size_t moves = 1 + random() % 2;
      for (std::size_t i = 0; i < moves; ++i) {
        const std::size_t top = peak[random() % peak.size()];
        const std::size_t item = random() % 3 == 0 ? top : any_conflict(top, random);
        move_to(next, item, any_conflict(item, random));
      }
      Packing packing = attempt(next, random() % 8 == 0 ? Fit::lowest : best_fit_);
      if (packing.high_water_bytes > current.high_water_bytes) continue;
      order = std::move(next);
      current = std::move(packing);
    }
  }

  std::size_t any_conflict(std::size_t item, std::mt19937_64& random) const {
    const Order& conflicts = packer_.conflicts(item);
    return conflicts.empty() ? item : conflicts[random() % conflicts.size()];
  }

  static void move_to(Order& order, std::size_t from, std::size_t to) {
    const auto first = std::find(order.begin(), order.end(), from);
    const auto second = std::find(order.begin(), order.end(), to);
    if (first < second) {
      std::rotate(first, first + 1, second + 1);
    } else {
      std::rotate(second, first, first + 1);
    }
  }

  const std::vector<PackItem>& items_;
  Packer packer_;
  std::size_t load_, tries_, tried_ = 0;
  Packing best_;
  Order best_order_;
  Fit best_fit_ = Fit::lowest;
};

}  // namespace

Packing pack(const std::vector<PackItem>& items) {
  if (items.empty()) return {};
  return Search(items).run();
}

}  // namespace headroom::detail
