#include "run/step_measure.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::bench {
namespace {

constexpr double kNanosecond = 1e-9;

/// Applies `change(sum member, other member)` to every member.
template <class Change>
void for_each_time(TraceSummary& sum, const TraceSummary& other, const Change& change) {
  for (double TraceSummary::*const time :
       {&TraceSummary::busy, &TraceSummary::exposed, &TraceSummary::completion, &TraceSummary::device_idle,
        &TraceSummary::throttle, &TraceSummary::allocator, &TraceSummary::launch, &TraceSummary::vote,
        &TraceSummary::path_compute, &TraceSummary::path_gather, &TraceSummary::path_reduce,
        &TraceSummary::path_host}) {
    change(sum.*time, other.*time);
  }
}

bool overlaps(std::int64_t start_ns, std::int64_t end_ns, const StepWindow& window) {
  return end_ns > window.begin_ns && start_ns < window.end_ns;
}

std::map<StreamId, StreamRole> roles_of(const Trace& trace) {
  std::map<StreamId, StreamRole> roles;
  for (const StreamInfo& stream : trace.streams()) roles[stream.id] = stream.role;
  return roles;
}

/// The part of a trace that one step's summary needs; `summarize` reads a trace as a whole.
TraceSummary summarize_window(const std::vector<OperationRecord>& operations, const std::vector<HostSpan>& spans,
                              const std::vector<StreamInfo>& streams, const StepWindow& window) {
  Trace step(operations.size() + spans.size() + streams.size());
  for (const StreamInfo& stream : streams) step.add_stream(stream);
  for (const OperationRecord& record : operations) {
    if (overlaps(record.start_ns, record.end_ns, window)) step.add(record);
  }
  for (const HostSpan& span : spans) {
    if (overlaps(span.start_ns, span.end_ns, window)) step.add(span);
  }
  return summarize(step, window.begin_ns, window.end_ns);
}

}  // namespace

void StepMeasure::fold(const Trace& trace, std::span<const StepWindow> windows, StreamId compute) {
  const std::vector<OperationRecord> operations = trace.operations();
  const std::vector<HostSpan> spans = trace.host_spans();
  const std::vector<StreamInfo> streams = trace.streams();
  const std::map<StreamId, StreamRole> roles = roles_of(trace);
  const auto has_role = [&roles](StreamId stream, StreamRole role) {
    const auto found = roles.find(stream);
    return found != roles.end() && found->second == role;
  };
  std::map<std::pair<StreamId, Ticket>, std::int64_t> gather_ends;
  for (const OperationRecord& record : operations) {
    if (record.kind == OperationRecord::Kind::work && has_role(record.stream, StreamRole::gather)) {
      gather_ends[{record.stream, record.ticket}] = record.end_ns;
    }
  }
  for (const StepWindow& window : windows) {
    for_each_time(sum_, summarize_window(operations, spans, streams, window),
                  [](double& total, double value) { total += value; });
    ++steps_;
    for (const OperationRecord& record : operations) {
      if (record.start_ns < window.begin_ns || record.start_ns >= window.end_ns) continue;
      if (record.kind == OperationRecord::Kind::work) {
        all_gathers_ += std::string_view(record.name) == "all_gather" ? 1 : 0;
        reduce_scatters_ += std::string_view(record.name) == "reduce_scatter" ? 1 : 0;
      } else if (record.kind == OperationRecord::Kind::wait && record.stream == compute &&
                 has_role(record.producer, StreamRole::gather)) {
        auto end = gather_ends.upper_bound({record.producer, record.producer_ticket});
        if (end == gather_ends.begin() || (--end)->first.first != record.producer) continue;
        const double slack = static_cast<double>(record.start_ns - end->second) * kNanosecond;
        ++availability_.visits;
        availability_.late += slack < 0 ? 1 : 0;
        availability_.min_slack_seconds =
            std::min(availability_.min_slack_seconds.value_or(std::numeric_limits<double>::infinity()), slack);
      }
    }
  }
}

void StepMeasure::write_means(RankRecord& record) const {
  record.measured_steps = steps_;
  if (steps_ == 0) return;
  const auto steps = static_cast<double>(steps_);
  for_each_time(record.times, sum_, [steps](double& mean, double total) { mean = total / steps; });
  record.communication.all_gathers = all_gathers_ / steps;
  record.communication.reduce_scatters = reduce_scatters_ / steps;
  record.availability = availability_;
}

}  // namespace headroom::bench
