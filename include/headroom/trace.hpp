#pragma once

#include <headroom/stream.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom {

/// What one operation of one stream did. All times are Device::now_ns.
struct OperationRecord {
  enum class Kind : std::uint8_t { work, wait, skipped };
  Kind kind = Kind::work;
  StreamId stream = 0;
  Ticket ticket = 0;
  const char* name = "";
  int unit = -1;
  std::int64_t issued_ns = 0;  ///< Enqueued by the host.
  std::int64_t start_ns = 0;   ///< Work: began. Wait: the stream reached it.
  std::int64_t end_ns = 0;     ///< Work: complete. Wait: satisfied.
  StreamId producer = 0;       ///< Of a wait: whose ticket was waited for.
  Ticket producer_ticket = 0;
};

/// Why the host did not issue work: time spent by the issuing thread.
enum class HostCause : std::uint8_t { throttle, allocator, launch, vote };

struct HostSpan {
  HostCause cause = HostCause::launch;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct StreamInfo {
  StreamId id = 0;
  StreamRole role = StreamRole::compute;
  std::string name;
};

struct TraceRecords {
  std::vector<OperationRecord> operations;  ///< Sorted by (start_ns, stream, ticket).
  std::vector<HostSpan> host_spans;
  std::uint64_t dropped = 0;
};

/// Everything a device's streams did, bounded: when full, new records are dropped and counted.
/// Thread-safety: all members may be called from any thread.
class Trace {
 public:
  explicit Trace(std::size_t capacity = 1U << 20);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void set_enabled(bool enabled) noexcept;
  [[nodiscard]] bool enabled() const noexcept;
  void add(const OperationRecord& record);
  void add(const HostSpan& span);
  void add_stream(const StreamInfo& stream);

  /// Records of complete operations, sorted by (start_ns, stream, ticket).
  [[nodiscard]] std::vector<OperationRecord> operations() const;
  /// Those that touch [begin_ns, end_ns].
  [[nodiscard]] std::vector<OperationRecord> operations(std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] std::vector<HostSpan> host_spans() const;
  [[nodiscard]] std::vector<StreamInfo> streams() const;
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  [[nodiscard]] TraceRecords take();  ///< What clear() forgets.
  void clear();  ///< Forgets records and the count of dropped ones; streams stay, and so does the memory.
  void reserve(std::size_t times);  ///< Takes the memory for so many times as many records as there are.
  [[nodiscard]] std::size_t bytes() const noexcept;  ///< Of memory that records take, or took.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where the time of [begin_ns, end_ns] went; all values in seconds.
struct TraceSummary {
  double busy = 0;         ///< Communication streams running an operation, summed over those streams.
  double exposed = 0;      ///< The compute stream waiting, on the device, for a communication stream.
  double completion = 0;   ///< From the window's begin to the end of its last communication operation.
  double device_idle = 0;  ///< The compute stream neither computing nor waiting for communication.
  double throttle = 0, allocator = 0, launch = 0, vote = 0;  ///< Host time by cause.
  /// The step's critical path, walked back from its end: an operation's binding predecessor is the latest of the one
  /// before it in its stream, the operation it waited for, and its own issue by the host.
  double path_compute = 0, path_gather = 0, path_reduce = 0, path_host = 0;
};

[[nodiscard]] TraceSummary summarize(const Trace& trace, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace headroom
