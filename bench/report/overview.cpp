#include "report/step_detail.hpp"

#include <headroom/timeline.hpp>

#include <algorithm>

namespace headroom::bench {
namespace {

/// Which step each operation was issued in gives the steps their device times.
void add_device_times(const PageSource& source, std::vector<StepSummary>& steps) {
  if (steps.empty()) return;
  std::vector<bool> known(steps.size());
  for (StepSummary& step : steps) {
    step.device_begin_ns = step.host_begin_ns;
    step.device_end_ns = step.host_end_ns;
  }
  PageSource::Visitor visitor;
  visitor.operation = [&](const RecordedOperation& record) {
    if (record.kind != OperationRecord::Kind::work) return;
    const auto next =
        std::upper_bound(steps.begin(), steps.end(), record.issued_ns,
                         [](std::int64_t ns, const StepSummary& step) { return ns < step.host_begin_ns; });
    const auto index = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, next - steps.begin() - 1));
    StepSummary& step = steps[index];
    step.device_begin_ns = known[index] ? std::min(step.device_begin_ns, record.start_ns) : record.start_ns;
    step.device_end_ns = known[index] ? std::max(step.device_end_ns, record.end_ns) : record.end_ns;
    known[index] = true;
    ++step.rows;
  };
  source.visit(visitor);
}

}  // namespace

RunOverview overview(const PageSource& source) {
  RunOverview run;
  Timeline timeline;
  PageSource::Visitor visitor;
  visitor.event = [&](const AllocatorEvent& event) {
    const bool marks_step = event.kind == AllocatorEvent::Kind::step;
    if (marks_step || run.steps.empty()) {
      StepSummary step;
      step.step = marks_step ? static_cast<std::int64_t>(event.allocation) : 0;
      step.begin_event = event.number;
      step.host_begin_ns = event.time_ns;
      run.steps.push_back(step);
    }
    const MemoryInstant& memory = timeline.apply(event);
    StepSummary& step = run.steps.back();
    if (event.number == step.begin_event || event.kind == AllocatorEvent::Kind::peak_reset ||
        memory.allocated_bytes() > step.peak_allocated) {
      step.peak_allocated = memory.allocated_bytes();
      step.peak_event = event.number;
    }
    step.peak_active = std::max(step.peak_active, memory.statistics.active_bytes.current);
    step.peak_reserved = std::max(step.peak_reserved, memory.reserved_bytes());
    step.end_event = event.number + 1;
    step.host_end_ns = event.time_ns;
    ++step.rows;
  };
  source.visit(visitor);
  add_device_times(source, run.steps);
  run.peak = timeline.peak(source.names);
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    if (run.steps[i].begin_event <= run.peak.event) run.peak_step = i;
  return run;
}

}  // namespace headroom::bench
