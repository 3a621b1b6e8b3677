#include "report/step_series.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::bench {
namespace {

using To = BlockChange::To;

/// One thing that happens: a block changes, or a region's reserved bytes do.
struct Item {
  double x = 0;
  std::uint64_t event = 0;
  const PageBlock* block = nullptr;
  const BlockChange* from = nullptr;  ///< What the block was until now; none: nothing.
  const BlockChange* change = nullptr;
  const ReservedChange* reserved = nullptr;
};

class Folder {
 public:
  Folder(const StepDetail& detail, bool device_time) : detail_(detail) {
    const StepSummary& step = detail.summary;
    series_.is_device_time = device_time;
    series_.begin = device_time ? 0 : static_cast<double>(detail.begin_event);
    series_.end = device_time ? milliseconds(step.device_end_ns) : static_cast<double>(detail.end_event);
  }

  StepSeries fold() {
    collect();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      apply(items_[i]);
      if (i + 1 == items_.size() || items_[i + 1].x > items_[i].x) push(items_[i].x);
    }
    for (std::size_t i = 0; i < series_.instants.size(); ++i) {
      if (series_.instants[i].allocated_bytes > series_.instants[series_.highest].allocated_bytes) series_.highest = i;
    }
    return std::move(series_);
  }

 private:
  [[nodiscard]] double milliseconds(std::int64_t ns) const {
    return static_cast<double>(ns - detail_.summary.device_begin_ns) * 1e-6;
  }
  [[nodiscard]] double position(std::uint64_t event, std::int64_t ns) const {
    return std::max(series_.begin, series_.is_device_time ? milliseconds(ns) : static_cast<double>(event));
  }

  void collect() {
    for (const PageBlock& block : detail_.blocks) {
      const BlockChange* from = nullptr;
      for (const BlockChange& change : block.changes) {
        Item item;
        item.x = position(change.event, change.device_ns);
        item.event = change.event;
        item.block = &block;
        item.from = std::exchange(from, &change);
        item.change = &change;
        const bool is_past = series_.is_device_time ? item.x > series_.end : item.x >= series_.end;
        if (!is_past) items_.push_back(item);
      }
    }
    for (const ReservedChange& change : detail_.reserved) {
      Item item;
      item.x = std::min(position(change.event, change.host_ns), series_.end);
      item.event = change.event;
      item.reserved = &change;
      items_.push_back(item);
    }
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.x != b.x ? a.x < b.x : a.event < b.event; });
  }

  void apply(const Item& item) {
    if (item.reserved != nullptr) {
      reserved_[static_cast<std::size_t>(item.reserved->region)] = item.reserved->bytes;
      return;
    }
    if (item.from != nullptr) add(*item.from, item.block->bytes, false);
    add(*item.change, item.block->bytes, true);
  }

  void add(const BlockChange& change, std::size_t bytes, bool more) {
    const auto count = [bytes, more](std::size_t& sum) { sum = more ? sum + bytes : sum - bytes; };
    if (change.to == To::pending && !series_.is_device_time) count(now_.pending_bytes);
    if (change.to != To::live) return;
    count(now_.tag_bytes[static_cast<std::size_t>(change.tag)]);
    count(now_.allocated_bytes);
  }

  void push(double x) {
    now_.x = x;
    now_.reserved_bytes = 0;
    for (const std::size_t bytes : reserved_) now_.reserved_bytes += bytes;
    series_.instants.push_back(now_);
  }

  const StepDetail& detail_;
  StepSeries series_;
  StepInstant now_;
  std::array<std::size_t, kRegionCount> reserved_{};
  std::vector<Item> items_;
};

}  // namespace

StepSeries step_series(const StepDetail& detail, bool device_time) { return Folder(detail, device_time).fold(); }

}  // namespace headroom::bench
