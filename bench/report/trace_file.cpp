#include "report/trace_file.hpp"

#include "options/json_text.hpp"
#include "report/trace_flows.hpp"
#include "report/trace_memory.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

constexpr int kHostThread = 1'000'000;  // below it: streams

/// Reads all of a recording, and so checks it.
TraceExtent extent_of(const std::string& recording) {
  RecordingReader reader(recording, Holes::allowed);
  TraceExtent extent;
  bool has_events = false;
  while (reader.next()) {
    extent.operations += reader.operations().size();
    for (const AllocatorEvent& event : reader.events()) {
      using Kind = AllocatorEvent::Kind;
      if (!std::exchange(has_events, true)) extent.first_ns = event.time_ns;
      extent.last_ns = std::max(extent.last_ns, event.time_ns);
      if (event.kind == Kind::alloc && event.bytes >= kShownBytes) ++extent.lifetimes;
      if (event.kind == Kind::alloc || event.kind == Kind::retag) extent.tags.set(static_cast<std::size_t>(event.tag));
    }
  }
  if (reader.lost_events() > 0)
    spdlog::warn("{}: the trace shows no memory after the first hole: the allocator's log lost {} events", recording,
                 reader.lost_events());
  return extent;
}

std::size_t left_out(std::size_t count, std::size_t limit) { return count - std::min(count, limit); }

/// One rank's process.
class RankTrace {
 public:
  RankTrace(TraceWriter& out, const std::string& recording, const TraceExtent& extent, const TraceLimits& limits)
      : out_(out),
        reader_(recording, Holes::allowed),
        operations_left_out_(left_out(extent.operations, limits.operations)),
        memory_(out, reader_, extent, bucket_ns(extent, limits), left_out(extent.lifetimes, limits.lifetimes)) {}

  void write() {
    out_.process_name(process(), fmt::format("rank {}", reader_.info().rank));
    out_.thread_name(process(), kHostThread, "host");
    while (reader_.next()) {
      for (const RecordedOperation& operation : reader_.operations()) write_operation(operation);
      for (const HostSpan& span : reader_.host_spans()) write_host_span(span);
      for (const AllocatorEvent& event : reader_.events()) memory_.apply(event);
    }
    write_flows(waits_.finish());
    memory_.finish();
    for (const StreamInfo& stream : reader_.streams())
      out_.thread_name(process(), static_cast<int>(stream.id), stream.name);
  }

 private:
  static std::int64_t bucket_ns(const TraceExtent& extent, const TraceLimits& limits) {
    constexpr std::int64_t kFinest = 10'000;
    const auto samples = static_cast<std::int64_t>(std::max<std::size_t>(limits.counter_samples, 1));
    return std::max(kFinest, (extent.last_ns - extent.first_ns) / samples + 1);
  }
  [[nodiscard]] int process() const { return static_cast<int>(reader_.info().rank); }
  [[nodiscard]] std::int64_t at(std::int64_t device_ns) const { return reader_.info().steady_ns + device_ns; }

  [[nodiscard]] std::string unit(std::int32_t index) const {
    const std::vector<std::string>& units = reader_.info().units;
    const bool known = index >= 0 && static_cast<std::size_t>(index) < units.size();
    return known ? units[static_cast<std::size_t>(index)] : std::string();
  }

  void write_operation(const RecordedOperation& operation) {
    if (operations_left_out_ > 0) {
      --operations_left_out_;
      return;
    }
    const bool is_wait = operation.kind == OperationRecord::Kind::wait;
    const bool is_shown =
        operation.kind != OperationRecord::Kind::skipped && !(is_wait && operation.end_ns == operation.start_ns);
    if (is_shown) {
      TraceWriter::Slice slice{process(),
                               static_cast<int>(operation.stream),
                               at(operation.start_ns),
                               at(operation.end_ns),
                               is_wait ? "wait" : "work",
                               "wait",
                               {}};
      if (!is_wait) slice.name = reader_.operation_names()[operation.name];
      slice.arguments = fmt::format(R"("unit":{},"ticket":{},"issued_us":{:.3f})", dump(unit(operation.unit)),
                                    operation.ticket, static_cast<double>(at(operation.issued_ns)) / 1000.0);
      out_.slice(slice);
    }
    write_flows(waits_.add(operation));
  }

  /// Both ends lie a nanosecond within their slices: a viewer binds them to what is open there.
  void write_flows(const std::vector<EndedWait>& ended) {
    for (const EndedWait& each : ended) {
      const RecordedOperation& producer = each.producer;
      if (producer.kind == OperationRecord::Kind::skipped || producer.end_ns <= producer.start_ns) continue;
      const std::int64_t from = producer.end_ns - 1, to = each.wait.end_ns - 1;
      if (to < from) continue;
      const std::uint64_t id = (static_cast<std::uint64_t>(reader_.info().rank) << 32U) + ++flows_;
      out_.flow('s', process(), static_cast<int>(producer.stream), at(from), id);
      out_.flow('f', process(), static_cast<int>(each.wait.stream), at(to), id);
    }
  }

  void write_host_span(const HostSpan& span) {
    constexpr std::array<const char*, 4> kCauses{"throttle", "allocator", "launch", "vote"};
    out_.slice({process(),
                kHostThread,
                at(span.start_ns),
                at(span.end_ns),
                "host",
                kCauses[static_cast<std::size_t>(span.cause)],
                {}});
  }

  TraceWriter& out_;
  RecordingReader reader_;
  std::size_t operations_left_out_;
  TraceMemory memory_;
  WaitMatcher waits_;
  std::uint64_t flows_ = 0;
};

}  // namespace

void write_trace(const std::vector<std::string>& recordings, const std::string& path, const TraceLimits& limits) {
  std::vector<TraceExtent> extents;
  for (const std::string& recording : recordings) extents.push_back(extent_of(recording));
  OutputFile file(path);
  TraceWriter out(file);
  for (std::size_t i = 0; i < recordings.size(); ++i) RankTrace(out, recordings[i], extents[i], limits).write();
  out.finish();
  file.close();
}

}  // namespace headroom::bench
