#include "report/trace_file.hpp"

#include "options/json_text.hpp"

#include <headroom/timeline.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace headroom::bench {
namespace {

constexpr int kHostThread = 1'000'000;  // below it: streams

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

std::string quoted(const std::string& text) { return dump(text); }

bool changes_memory(AllocatorEvent::Kind kind) {
  using Kind = AllocatorEvent::Kind;
  return kind == Kind::segment_map || kind == Kind::segment_unmap || kind == Kind::alloc ||
         kind == Kind::free_requested || kind == Kind::retag;
}

class Writer {
 public:
  Writer(std::ostream& out, const TraceSource& source) : out_(out), source_(source) {}

  void write() {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    write_names();
    write_operations();
    write_host_spans();
    write_memory();
    out_ << "\n]}\n";
  }

 private:
  std::ostream& next() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
    return out_;
  }

  void name(const char* what, int thread, const std::string& text) {
    next() << fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", source_.rank, thread,
                          what, quoted(text));
  }

  [[nodiscard]] std::string unit(int index) const {
    const bool known = index >= 0 && static_cast<std::size_t>(index) < source_.unit_names.size();
    return known ? source_.unit_names[static_cast<std::size_t>(index)] : std::string();
  }

  void write_names() {
    name("process_name", 0, fmt::format("rank {}", source_.rank));
    name("thread_name", kHostThread, "host");
    for (const StreamInfo& stream : source_.trace->streams()) {
      name("thread_name", static_cast<int>(stream.id), stream.name);
    }
  }

  void write_operations() {
    const std::vector<OperationRecord> operations = source_.trace->operations();
    std::map<std::pair<StreamId, Ticket>, std::int64_t> ends;
    for (const OperationRecord& record : operations) ends[{record.stream, record.ticket}] = record.end_ns;
    std::uint64_t flow = 0;
    for (const OperationRecord& record : operations) {
      if (record.kind == OperationRecord::Kind::skipped) continue;
      const bool wait = record.kind == OperationRecord::Kind::wait;
      if (wait && record.end_ns == record.start_ns) continue;
      next() << fmt::format(
          R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"cat":"{}","name":{},"args":{{"unit":{},"ticket":{},"issued":{:.3f}}}}})",
          source_.rank, record.stream, microseconds(record.start_ns), microseconds(record.end_ns - record.start_ns),
          wait ? "wait" : "work", wait ? "\"wait\"" : quoted(record.name), quoted(unit(record.unit)), record.ticket,
          microseconds(record.issued_ns));
      if (!wait) continue;
      auto end = ends.upper_bound({record.producer, record.producer_ticket});
      if (end == ends.begin() || (--end)->first.first != record.producer) continue;
      write_flow(++flow, record, end->second);
    }
  }

  void write_flow(std::uint64_t id, const OperationRecord& wait, std::int64_t produced_ns) {
    next() << fmt::format(R"({{"ph":"s","pid":{},"tid":{},"ts":{:.3f},"id":{},"cat":"wait","name":"wait"}})",
                          source_.rank, wait.producer, microseconds(produced_ns), id);
    next() << fmt::format(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{:.3f},"id":{},"cat":"wait","name":"wait"}})",
                          source_.rank, wait.stream, microseconds(wait.end_ns), id);
  }

  void write_host_spans() {
    constexpr std::array<const char*, 4> kCauses{"throttle", "allocator", "launch", "vote"};
    for (const HostSpan& span : source_.trace->host_spans()) {
      next() << fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"cat":"host","name":"{}"}})",
                            source_.rank, kHostThread, microseconds(span.start_ns),
                            microseconds(span.end_ns - span.start_ns), kCauses[static_cast<std::size_t>(span.cause)]);
    }
  }

  void write_counter(std::int64_t time_ns, const MemoryInstant& memory) {
    std::string args;
    for (int tag = 0; tag < kTagCount; ++tag) {
      args += fmt::format("{}\"{}\":{}", tag == 0 ? "" : ",", name_of(static_cast<Tag>(tag)),
                          memory.bytes(static_cast<Tag>(tag)));
    }
    next() << fmt::format(R"({{"ph":"C","pid":{},"ts":{:.3f},"name":"allocated bytes","args":{{{}}}}})", source_.rank,
                          microseconds(time_ns), args);
    next() << fmt::format(R"({{"ph":"C","pid":{},"ts":{:.3f},"name":"reserved bytes","args":{{"reserved":{}}}}})",
                          source_.rank, microseconds(time_ns), memory.reserved_bytes());
  }

  /// Nothing where the allocator's log lost its beginning: sums would be wrong.
  void write_memory() {
    if (const std::uint64_t dropped = source_.memory->dropped_events(); dropped > 0) {
      spdlog::warn("rank {}: the trace file has no memory counters: the allocator's log lost its first {} events",
                   source_.rank, dropped);
      return;
    }
    Timeline timeline;
    for (const AllocatorEvent& event : source_.memory->events()) {
      const MemoryInstant& memory = timeline.apply(event);
      if (changes_memory(event.kind)) write_counter(event.time_ns, memory);
    }
  }

  std::ostream& out_;
  const TraceSource& source_;
  bool first_ = true;
};

}  // namespace

void write_trace(std::ostream& out, const TraceSource& source) { Writer(out, source).write(); }

}  // namespace headroom::bench
