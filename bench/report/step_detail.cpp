#include "report/step_detail.hpp"

#include <headroom/timeline.hpp>

#include "report/device_clock.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;

/// The peak's step first, then from both ends inwards.
std::vector<std::size_t> by_interest(const RunOverview& run) {
  std::vector<std::size_t> order{run.peak_step};
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const std::size_t first = i / 2, last = run.steps.size() - 1 - i / 2;
    const std::size_t next = i % 2 == 0 ? first : last;
    if (next != run.peak_step) order.push_back(next);
  }
  return order;
}

/// Steps that do not fit are left out; of the peak's, at least what is around the peak is shown.
std::vector<StepDetail> choose(const RunOverview& run, std::size_t rows) {
  std::set<std::size_t> chosen;
  std::size_t left = rows;
  for (const std::size_t index : by_interest(run)) {
    if (run.steps[index].rows > left && index != run.peak_step) continue;
    chosen.insert(index);
    left -= std::min(left, run.steps[index].rows);
  }
  std::vector<StepDetail> details;
  for (const std::size_t index : chosen) {
    StepDetail detail;
    detail.summary = run.steps[index];
    detail.begin_event = detail.summary.begin_event;
    detail.end_event = detail.summary.end_event;
    if (detail.summary.rows > rows) {
      const std::uint64_t half = rows / 2, peak = detail.summary.peak_event;
      detail.begin_event = std::max(detail.begin_event, peak > half ? peak - half : 0);
      detail.end_event = std::min(detail.end_event, peak + half);
    }
    details.push_back(std::move(detail));
  }
  return details;
}

/// Follows every block, and gives those that are gone to the steps that they lived in.
class Collector {
 public:
  Collector(const DeviceClock& clock, std::vector<StepDetail>& details) : clock_(clock), details_(details) {}

  void apply(const AllocatorEvent& event) {
    enter(event);
    note_views(timeline_.apply(event));
    switch (event.kind) {
      case Kind::alloc: begin(event); break;
      case Kind::retag: change(event, BlockChange::To::live, clock_.after(event.stream, event.ticket)); break;
      case Kind::use: used(event); break;
      case Kind::free_requested: end_of_life(event); break;
      case Kind::free_completed: complete(event); break;
      case Kind::segment_map: reserve(event, true); break;
      case Kind::segment_unmap: reserve(event, false); break;
      case Kind::unit: mark(event); break;
      default: break;
    }
  }

  void finish() {
    while (next_ < details_.size()) open(details_[next_++], 0, 0);
    for (auto& entry : live_) give(entry.second.block);
    for (StepDetail& detail : details_) {
      const auto has_view = [](const ViewChange& change) { return change.union_bytes != change.share_bytes; };
      if (std::none_of(detail.views.begin(), detail.views.end(), has_view)) detail.views.clear();
      std::sort(detail.blocks.begin(), detail.blocks.end(),
                [](const PageBlock& a, const PageBlock& b) { return a.allocation < b.allocation; });
    }
  }

 private:
  struct Followed {
    PageBlock block;
    std::int64_t last_use_ns = 0;
  };

  void enter(const AllocatorEvent& event) {
    while (next_ < details_.size() && details_[next_].begin_event <= event.number)
      open(details_[next_++], event.number, event.time_ns);
  }
  void open(StepDetail& detail, std::uint64_t event, std::int64_t ns) const {
    for (std::size_t region = 0; region < reserved_.size(); ++region) {
      ReservedChange first;
      first.event = event;
      first.host_ns = ns;
      first.region = static_cast<Region>(region);
      first.bytes = reserved_[region];
      detail.reserved.push_back(first);
    }
  }
  /// The step that is being read, if it is shown.
  [[nodiscard]] StepDetail* current(std::uint64_t event) {
    if (next_ == 0) return nullptr;
    StepDetail& detail = details_[next_ - 1];
    return event < detail.end_event ? &detail : nullptr;
  }

  void note_views(const MemoryInstant& memory) {
    StepDetail* detail = current(memory.event);
    if (detail == nullptr) return;
    ViewChange next;
    next.event = memory.event;
    next.union_bytes = memory.union_bytes;
    next.share_bytes = memory.share_bytes;
    const bool is_new = detail->views.empty() || detail->views.back().union_bytes != next.union_bytes ||
                        detail->views.back().share_bytes != next.share_bytes;
    if (is_new) detail->views.push_back(next);
  }

  void begin(const AllocatorEvent& event) {
    Followed& followed = live_[event.allocation];
    followed = {};
    PageBlock& block = followed.block;
    block.allocation = event.allocation;
    block.address = event.address;
    block.name = event.name;
    block.unit = event.unit;
    block.region = event.region;
    block.bytes = event.bytes;
    block.requested_bytes = event.requested_bytes;
    change(event, BlockChange::To::live, clock_.after(event.stream, event.ticket));
  }

  void change(const AllocatorEvent& event, BlockChange::To to, std::optional<std::int64_t> device_ns) {
    const auto found = live_.find(event.allocation);
    if (found == live_.end()) return;
    std::vector<BlockChange>& changes = found->second.block.changes;
    BlockChange next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.device_ns =
        std::max(device_ns.value_or(event.time_ns), changes.empty() ? INT64_MIN : changes.back().device_ns);
    next.to = to;
    next.tag = event.tag;
    changes.push_back(next);
  }

  void used(const AllocatorEvent& event) {
    const auto found = live_.find(event.allocation);
    if (found == live_.end()) return;
    const auto ended = clock_.complete(event.stream, event.ticket);
    if (ended) found->second.last_use_ns = std::max(found->second.last_use_ns, *ended);
  }

  void end_of_life(const AllocatorEvent& event) {
    used(event);
    const auto found = live_.find(event.allocation);
    if (found == live_.end()) return;
    const std::int64_t last = found->second.last_use_ns;
    change(event, BlockChange::To::pending, last != 0 ? std::optional(last) : std::nullopt);
  }

  void complete(const AllocatorEvent& event) {
    const auto found = live_.find(event.allocation);
    if (found == live_.end()) return;
    change(event, BlockChange::To::gone, found->second.block.changes.back().device_ns);
    give(found->second.block);
    live_.erase(found);
  }

  void give(const PageBlock& block) {
    const BlockChange& first = block.changes.front();
    const BlockChange& last = block.changes.back();
    const bool gone = last.to != BlockChange::To::live;
    for (StepDetail& detail : details_) {
      const bool by_event =
          first.event < detail.end_event && (last.to != BlockChange::To::gone || last.event >= detail.begin_event);
      const bool by_time = first.device_ns <= detail.summary.device_end_ns &&
                           (!gone || last.device_ns >= detail.summary.device_begin_ns);
      if (by_event || by_time) detail.blocks.push_back(block);
    }
  }

  void reserve(const AllocatorEvent& event, bool more) {
    std::size_t& bytes = reserved_[static_cast<std::size_t>(event.region)];
    bytes = more ? bytes + event.bytes : bytes - event.bytes;
    StepDetail* detail = current(event.number);
    if (detail == nullptr) return;
    ReservedChange next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.region = event.region;
    next.bytes = bytes;
    detail->reserved.push_back(next);
  }

  void mark(const AllocatorEvent& event) {
    StepDetail* detail = current(event.number);
    if (detail == nullptr) return;
    UnitMark next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.unit = event.unit;
    next.name = event.name;
    detail->marks.push_back(next);
  }

  const DeviceClock& clock_;
  std::vector<StepDetail>& details_;
  Timeline timeline_;
  std::size_t next_ = 0;  ///< Of details_: not begun yet.
  std::array<std::size_t, kRegionCount> reserved_{};
  std::unordered_map<std::uint64_t, Followed> live_;
};

bool shows(const StepSummary& step, std::int64_t issued_ns, std::int64_t begin_ns, std::int64_t end_ns) {
  const bool is_issued = issued_ns >= step.host_begin_ns && issued_ns <= step.host_end_ns;
  return is_issued || (begin_ns <= step.device_end_ns && end_ns >= step.device_begin_ns);
}

/// Gives the steps their operations and spans.
DeviceClock read_operations(const PageSource& source, std::vector<StepDetail>& details) {
  DeviceClock clock;
  PageSource::Visitor visitor;
  visitor.operation = [&](const RecordedOperation& record) {
    const bool is_seen = record.kind == OperationRecord::Kind::work || record.end_ns > record.start_ns;
    bool of_interest = false;
    for (StepDetail& detail : details) {
      if (!is_seen || !shows(detail.summary, record.issued_ns, record.start_ns, record.end_ns)) continue;
      of_interest = true;
      detail.operations.push_back(record);
    }
    clock.add(record, of_interest);
  };
  visitor.span = [&](const HostSpan& span) {
    for (StepDetail& detail : details)
      if (shows(detail.summary, span.start_ns, span.start_ns, span.end_ns)) detail.host_spans.push_back(span);
  };
  source.visit(visitor);
  clock.sort();
  return clock;
}

}  // namespace

std::vector<StepDetail> details(const PageSource& source, const RunOverview& run, std::size_t rows) {
  if (run.steps.empty()) return {};
  std::vector<StepDetail> all = choose(run, rows);
  const DeviceClock clock = read_operations(source, all);
  Collector collector(clock, all);
  PageSource::Visitor visitor;
  visitor.event = [&collector](const AllocatorEvent& event) { collector.apply(event); };
  source.visit(visitor);
  collector.finish();
  return all;
}

}  // namespace headroom::bench
