#include "run/step_measure.hpp"

#include <algorithm>
#include <map>
#include <optional>
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

/// The streams of a trace, and when each of its gathers was complete.
class Gathers {
 public:
  Gathers(const std::vector<StreamInfo>& streams, const std::vector<OperationRecord>& operations) {
    for (const StreamInfo& stream : streams) roles_[stream.id] = stream.role;
    for (const OperationRecord& record : operations) {
      if (record.kind != OperationRecord::Kind::work || !is_gather(record.stream)) continue;
      ends_[{record.stream, record.ticket}] = record.end_ns;
    }
  }

  /// From the end of the gather that `record` waits for to its turn; none where it waits for no gather.
  [[nodiscard]] std::optional<double> slack_seconds(const OperationRecord& record) const {
    if (record.kind != OperationRecord::Kind::wait || !is_gather(record.producer)) return std::nullopt;
    auto end = ends_.upper_bound({record.producer, record.producer_ticket});
    if (end == ends_.begin() || (--end)->first.first != record.producer) return std::nullopt;
    return static_cast<double>(record.start_ns - end->second) * kNanosecond;
  }

 private:
  [[nodiscard]] bool is_gather(StreamId stream) const {
    const auto found = roles_.find(stream);
    return found != roles_.end() && found->second == StreamRole::gather;
  }

  std::map<StreamId, StreamRole> roles_;
  std::map<std::pair<StreamId, Ticket>, std::int64_t> ends_;
};

void add_visit(Availability& availability, double slack) {
  ++availability.visits;
  availability.late += slack < 0 ? 1 : 0;
  availability.min_slack_seconds = std::min(availability.min_slack_seconds.value_or(slack), slack);
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
  const Gathers gathers(streams, operations);
  for (const StepWindow& window : windows) {
    for_each_time(sum_, summarize_window(operations, spans, streams, window),
                  [](double& total, double value) { total += value; });
    ++steps_;
    for (const OperationRecord& record : operations) {
      if (record.start_ns < window.begin_ns || record.start_ns >= window.end_ns) continue;
      if (record.kind == OperationRecord::Kind::work) {
        count(record);
      } else if (record.stream == compute) {
        if (const auto slack = gathers.slack_seconds(record)) add_visit(availability_, *slack);
      }
    }
  }
}

void StepMeasure::count(const OperationRecord& work) {
  const std::string_view name = work.name;
  all_gathers_ += name == "all_gather" ? 1 : 0;
  reduce_scatters_ += name == "reduce_scatter" ? 1 : 0;
  all_reduces_ += name == "all_reduce" && work.unit >= 0 ? 1 : 0;  // of gradients: norm and loss work for no unit
}

void StepMeasure::write_means(RankRecord& record) const {
  record.measured_steps = steps_;
  if (steps_ == 0) return;
  const auto steps = static_cast<double>(steps_);
  for_each_time(record.times, sum_, [steps](double& mean, double total) { mean = total / steps; });
  record.communication.all_gathers = all_gathers_ / steps;
  record.communication.reduce_scatters = reduce_scatters_ / steps;
  record.communication.all_reduces = all_reduces_ / steps;
  record.availability = availability_;
}

}  // namespace headroom::bench
