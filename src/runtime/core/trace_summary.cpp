#include <headroom/trace.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/core/critical_path.hpp"

namespace headroom {
namespace {

using Kind = OperationRecord::Kind;

constexpr double kSecondsPerNs = 1e-9;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * kSecondsPerNs; }

struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct Window {
  std::int64_t begin_ns = 0, end_ns = 0;

  /// Empty intervals come out with end <= begin.
  [[nodiscard]] Interval clip(std::int64_t from_ns, std::int64_t to_ns) const {
    return {std::max(from_ns, begin_ns), std::min(to_ns, end_ns)};
  }
  [[nodiscard]] std::int64_t overlap(std::int64_t from_ns, std::int64_t to_ns) const {
    const Interval inside = clip(from_ns, to_ns);
    return std::max<std::int64_t>(0, inside.end_ns - inside.begin_ns);
  }
};

std::int64_t union_length(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::int64_t total = 0;
  std::int64_t covered = std::numeric_limits<std::int64_t>::min();
  for (const Interval& interval : intervals) {
    const std::int64_t from = std::max(interval.begin_ns, covered);
    if (interval.end_ns <= from) continue;
    total += interval.end_ns - from;
    covered = interval.end_ns;
  }
  return total;
}

double& time_of(TraceSummary& summary, HostCause cause) {
  switch (cause) {
    case HostCause::throttle: return summary.throttle;
    case HostCause::allocator: return summary.allocator;
    case HostCause::vote: return summary.vote;
    case HostCause::launch: break;
  }
  return summary.launch;
}

/// A wait inside another span (a throttle within a launch) is time of its own cause only.
void add_host_time(TraceSummary& summary, std::vector<HostSpan> spans, const Window& window) {
  std::stable_sort(spans.begin(), spans.end(), [](const HostSpan& a, const HostSpan& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::vector<HostSpan> around;  // innermost last
  for (const HostSpan& span : spans) {
    const double time = seconds(window.overlap(span.start_ns, span.end_ns));
    time_of(summary, span.cause) += time;
    while (!around.empty() && around.back().end_ns < span.end_ns) around.pop_back();
    if (!around.empty()) time_of(summary, around.back().cause) -= time;
    around.push_back(span);
  }
}

/// Communication, and what compute did meanwhile: it computes, or waits for communication, or is idle.
void add_device_time(TraceSummary& summary, const std::vector<OperationRecord>& records, const detail::Roles& roles,
                     const Window& window) {
  std::vector<Interval> computing;
  std::vector<Interval> occupied;  // computing, or waiting for communication
  std::int64_t busy_ns = 0;
  std::int64_t last_end_ns = window.begin_ns;
  for (const OperationRecord& record : records) {
    const Interval inside = window.clip(record.start_ns, record.end_ns);
    const bool compute = roles.of(record.stream) == StreamRole::compute;
    if (record.kind == Kind::work && roles.communicates(record.stream)) {
      busy_ns += window.overlap(record.start_ns, record.end_ns);
      last_end_ns = std::max(last_end_ns, inside.end_ns);
    } else if (record.kind == Kind::work && compute) {
      computing.push_back(inside);
      occupied.push_back(inside);
    } else if (record.kind == Kind::wait && compute && roles.communicates(record.producer)) {
      occupied.push_back(inside);
    }
  }
  const std::int64_t computing_ns = union_length(std::move(computing));
  const std::int64_t occupied_ns = union_length(std::move(occupied));
  summary.busy = seconds(busy_ns);
  summary.completion = seconds(last_end_ns - window.begin_ns);
  summary.exposed = seconds(occupied_ns - computing_ns);
  summary.device_idle = seconds(window.end_ns - window.begin_ns - occupied_ns);
}

}  // namespace

TraceSummary summarize(const Trace& trace, std::int64_t begin_ns, std::int64_t end_ns) {
  TraceSummary summary;
  if (end_ns <= begin_ns) return summary;
  const Window window{begin_ns, end_ns};
  const std::vector<OperationRecord> records = trace.operations(begin_ns, end_ns);
  const std::vector<HostSpan> spans = trace.host_spans();
  const detail::Roles roles(trace.streams());
  add_host_time(summary, spans, window);
  add_device_time(summary, records, roles, window);
  const detail::CriticalPath path = detail::critical_path(records, spans, roles, begin_ns, end_ns);
  summary.path_compute = seconds(path.compute_ns);
  summary.path_gather = seconds(path.gather_ns);
  summary.path_reduce = seconds(path.reduce_ns);
  summary.path_host = seconds(path.host_ns);
  return summary;
}

}  // namespace headroom
