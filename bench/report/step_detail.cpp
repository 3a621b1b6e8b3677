#include "report/step_detail.hpp"

#include "report/recorded_operation.hpp"

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

/// Gives each step that is shown what happened in it, and what was live before.
class Collector {
 public:
  explicit Collector(std::vector<StepDetail>& details) : details_(details) {}

  void apply(const AllocatorEvent& event) {
    while (next_ < details_.size() && details_[next_].begin_event <= event.number) open(details_[next_++], event);
    const MemoryInstant& memory = timeline_.apply(event);
    if (event.kind == Kind::segment_map) reserved_[static_cast<std::size_t>(event.region)] += event.bytes;
    if (event.kind == Kind::segment_unmap) reserved_[static_cast<std::size_t>(event.region)] -= event.bytes;
    if (next_ == 0 || event.number >= details_[next_ - 1].end_event) return;
    add(details_[next_ - 1], event, memory);
  }

 private:
  void open(StepDetail& detail, const AllocatorEvent& first) {
    detail.live = timeline_.live();
    blocks_.clear();
    for (const LiveBuffer& buffer : detail.live) {
      PageBlock block;
      block.allocation = buffer.allocation;
      block.name = buffer.name;
      block.unit = buffer.unit;
      block.region = buffer.region;
      block.bytes = buffer.bytes;
      block.requested_bytes = buffer.requested_bytes;
      add_block(detail, std::move(block));
      change(detail, buffer.allocation, first, buffer.pending ? BlockChange::To::pending : BlockChange::To::live,
             buffer.tag);
    }
    for (std::size_t region = 0; region < reserved_.size(); ++region)
      add_reserved(detail, first, static_cast<Region>(region));
  }

  void add(StepDetail& detail, const AllocatorEvent& event, const MemoryInstant& memory) {
    detail.events.push_back(event);
    switch (event.kind) {
      case Kind::alloc: begin(detail, event); break;
      case Kind::retag: change(detail, event.allocation, event, BlockChange::To::live, event.tag); break;
      case Kind::free_requested: change(detail, event.allocation, event, BlockChange::To::pending, event.tag); break;
      case Kind::free_completed: change(detail, event.allocation, event, BlockChange::To::gone, event.tag); break;
      case Kind::segment_map:
      case Kind::segment_unmap: add_reserved(detail, event, event.region); break;
      case Kind::unit: mark(detail, event); break;
      default: break;
    }
    note_views(detail, memory);
  }

  void begin(StepDetail& detail, const AllocatorEvent& event) {
    PageBlock block;
    block.allocation = event.allocation;
    block.name = event.name;
    block.unit = event.unit;
    block.region = event.region;
    block.bytes = event.bytes;
    block.requested_bytes = event.requested_bytes;
    add_block(detail, std::move(block));
    change(detail, event.allocation, event, BlockChange::To::live, event.tag);
  }

  void add_block(StepDetail& detail, PageBlock block) {
    blocks_[block.allocation] = detail.blocks.size();
    detail.blocks.push_back(std::move(block));
  }

  void change(StepDetail& detail, std::uint64_t allocation, const AllocatorEvent& event, BlockChange::To to,
              Tag tag) const {
    BlockChange next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.to = to;
    next.tag = tag;
    detail.blocks[blocks_.at(allocation)].changes.push_back(next);
  }

  void add_reserved(StepDetail& detail, const AllocatorEvent& event, Region region) const {
    ReservedChange next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.region = region;
    next.bytes = reserved_[static_cast<std::size_t>(region)];
    detail.reserved.push_back(next);
  }

  static void mark(StepDetail& detail, const AllocatorEvent& event) {
    UnitMark next;
    next.event = event.number;
    next.host_ns = event.time_ns;
    next.unit = event.unit;
    next.name = event.name;
    detail.marks.push_back(next);
  }

  static void note_views(StepDetail& detail, const MemoryInstant& memory) {
    ViewChange next;
    next.event = memory.event;
    next.union_bytes = memory.union_bytes;
    next.share_bytes = memory.share_bytes;
    const bool is_new = detail.views.empty() || detail.views.back().union_bytes != next.union_bytes ||
                        detail.views.back().share_bytes != next.share_bytes;
    if (is_new) detail.views.push_back(next);
  }

  std::vector<StepDetail>& details_;
  Timeline timeline_;
  std::size_t next_ = 0;  ///< Of details_: not begun yet.
  std::array<std::size_t, kRegionCount> reserved_{};
  std::unordered_map<std::uint64_t, std::size_t> blocks_;  ///< Of the step that is being read, by allocation.
};

bool shows(const StepSummary& step, std::int64_t issued_ns, std::int64_t begin_ns, std::int64_t end_ns) {
  const bool is_issued = issued_ns >= step.host_begin_ns && issued_ns <= step.host_end_ns;
  return is_issued || (begin_ns <= step.device_end_ns && end_ns >= step.device_begin_ns);
}

/// Gives the steps their operations and spans.
void read_operations(const PageSource& source, std::vector<StepDetail>& details) {
  PageSource::Visitor visitor;
  visitor.operation = [&](const RecordedOperation& record) {
    for (StepDetail& detail : details)
      if (shows(detail.summary, record.issued_ns, record.start_ns, record.end_ns)) detail.operations.push_back(record);
  };
  visitor.span = [&](const HostSpan& span) {
    for (StepDetail& detail : details)
      if (shows(detail.summary, span.start_ns, span.start_ns, span.end_ns)) detail.host_spans.push_back(span);
  };
  source.visit(visitor);
}

/// What needs all of a step.
void complete(StepDetail& detail) {
  const auto has_view = [](const ViewChange& change) { return change.union_bytes != change.share_bytes; };
  if (std::none_of(detail.views.begin(), detail.views.end(), has_view)) detail.views.clear();
  std::vector<OperationRecord> operations;
  for (const RecordedOperation& recorded : detail.operations) {
    operations.push_back(nameless(recorded));
  }
  if (!operations.empty()) detail.device_spans = device_spans(detail.live, detail.events, operations);
  detail.live.clear();
  detail.events.clear();
}

}  // namespace

std::vector<StepDetail> details(const PageSource& source, const RunOverview& run, std::size_t rows) {
  if (run.steps.empty()) return {};
  std::vector<StepDetail> all = choose(run, rows);
  read_operations(source, all);
  Collector collector(all);
  PageSource::Visitor visitor;
  visitor.event = [&collector](const AllocatorEvent& event) { collector.apply(event); };
  source.visit(visitor);
  for (StepDetail& detail : all) complete(detail);
  return all;
}

}  // namespace headroom::bench
