#pragma once

#include <headroom/stream.hpp>
#include <headroom/trace.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace headroom::detail {

/// One entry of a stream; every entry has a ticket.
struct QueueItem {
  enum class Kind : std::uint8_t { operation, wait, mark };
  Kind kind = Kind::operation;
  Operation operation;
  StreamId producer = 0;       ///< Of a wait.
  Ticket producer_ticket = 0;  ///< Of a wait.
  std::int64_t issued_ns = 0;
  std::int64_t start_ns = -1;  ///< Of an operation that has begun.
};

/// The state of one stream. Guarded by StreamTable::mutex, except that whoever executes the head owns its operation.
struct StreamQueue {
  StreamInfo info;
  std::deque<QueueItem> items;     ///< Not complete yet; the head may be running. Its ticket is completed + 1.
  std::atomic<Ticket> issued = 0;  ///< Read without the mutex, too.
  Ticket completed = 0;
  std::int64_t last_end_ns = 0;
  bool closed = false;
  bool ended = false;     ///< Closed and drained.
  bool poisoned = false;  ///< An operation threw: later ones are skipped.
  std::exception_ptr error;
  Ticket error_ticket = 0;
  std::vector<Ticket> awaited;        ///< What threads wait for on `changed`.
  std::condition_variable changed;    ///< An awaited ticket completed.
  std::condition_variable submitted;  ///< For the executor: an item was appended, or `closed` was set.
};

/// All streams of a machine, under one mutex; what every executor shares.
class StreamTable {
 public:
  explicit StreamTable(Trace& trace) : trace_(trace) {}

  std::mutex mutex;
  std::condition_variable progress;  ///< Some item of some stream completed.

  // With the mutex held:
  StreamQueue& open(const StreamOptions& options);
  [[nodiscard]] StreamQueue& at(StreamId stream) const;  ///< Throws: std::logic_error.
  [[nodiscard]] StreamId size() const noexcept { return static_cast<StreamId>(streams_.size()); }
  /// The head exists and is not a wait for a ticket that is still incomplete.
  [[nodiscard]] bool runnable(const StreamQueue& queue) const;
  /// Completes the head, whose operation must have been released; an error poisons the stream.
  void finish_head(StreamQueue& queue, std::int64_t end_ns, const std::exception_ptr& error);
  /// Blocks until the ticket is complete, for executors whose workers run by themselves.
  static void await(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket);

  /// Without the mutex: calls `pause` for at most 1 ms, or, where there is none, waits that long for any progress.
  void rest(const std::function<void(std::chrono::microseconds)>& pause);

 private:
  Trace& trace_;
  std::vector<std::unique_ptr<StreamQueue>> streams_;  // by id; closed streams stay, their tickets may be asked for
};

/// Runs the operation once: `host`, or one `poll`.
[[nodiscard]] Progress advance(Operation& operation);
/// Destroys the bodies, so that what they captured is gone before the ticket completes.
void release(Operation& operation) noexcept;

}  // namespace headroom::detail
