#include "report/step_series.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::bench {
namespace {

/// One thing that happens: bytes come or go, or what is reserved changes.
struct Item {
  double x = 0;
  std::uint64_t event = 0;
  std::size_t bytes = 0;
  Tag tag = Tag::other;
  enum class What : std::uint8_t { leaves, comes, stops_pending, pends, reserved } what = What::comes;
  Region region = Region::transients;
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
    series_.is_device_time ? collect_spans() : collect_changes();
    for (const ReservedChange& change : detail_.reserved) {
      Item item;
      item.x = std::min(position(change.event, change.host_ns), series_.end);
      item.event = change.event;
      item.bytes = change.bytes;
      item.what = Item::What::reserved;
      item.region = change.region;
      items_.push_back(item);
    }
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.x != b.x ? a.x < b.x : a.event < b.event; });
  }

  void collect_spans() {
    for (const BufferSpan& span : detail_.device_spans) {
      add_item(position(0, span.begin_ns), 0, span.bytes, span.tag, Item::What::comes);
      add_item(position(0, span.end_ns), 0, span.bytes, span.tag, Item::What::leaves);
    }
  }

  void collect_changes() {
    using To = BlockChange::To;
    for (const PageBlock& block : detail_.blocks) {
      const BlockChange* from = nullptr;
      for (const BlockChange& change : block.changes) {
        const double x = position(change.event, 0);
        if (from != nullptr && from->to != To::gone)
          add_item(x, change.event, block.bytes, from->tag,
                   from->to == To::live ? Item::What::leaves : Item::What::stops_pending);
        if (change.to != To::gone)
          add_item(x, change.event, block.bytes, change.tag,
                   change.to == To::live ? Item::What::comes : Item::What::pends);
        from = &change;
      }
    }
  }

  void add_item(double x, std::uint64_t event, std::size_t bytes, Tag tag, Item::What what) {
    Item item;
    item.x = x;
    item.event = event;
    item.bytes = bytes;
    item.tag = tag;
    item.what = what;
    if (x <= series_.end) items_.push_back(item);
  }

  void apply(const Item& item) {
    std::size_t& tag = now_.tag_bytes[static_cast<std::size_t>(item.tag)];
    switch (item.what) {
      case Item::What::comes:
        tag += item.bytes;
        now_.allocated_bytes += item.bytes;
        break;
      case Item::What::leaves:
        tag -= item.bytes;
        now_.allocated_bytes -= item.bytes;
        break;
      case Item::What::pends: now_.pending_bytes += item.bytes; break;
      case Item::What::stops_pending: now_.pending_bytes -= item.bytes; break;
      case Item::What::reserved: reserved_[static_cast<std::size_t>(item.region)] = item.bytes; break;
    }
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
