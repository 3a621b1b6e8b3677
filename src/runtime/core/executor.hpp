#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/core/backend.hpp"
#include "runtime/core/stream_queue.hpp"

namespace headroom::detail {

/// Decides when the heads of a machine's streams run, and what time it is. It completes items in order, runs no
/// operation of a poisoned stream, and honours waits even there: others may be ordered after them.
class StreamExecutor {
 public:
  StreamExecutor() = default;
  StreamExecutor(const StreamExecutor&) = delete;
  StreamExecutor& operator=(const StreamExecutor&) = delete;
  virtual ~StreamExecutor() = default;

  [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
  /// The stream is new. With the mutex held.
  virtual void opened(StreamQueue& queue) = 0;
  /// An item was appended. Without the mutex: a worker that is woken must not find it taken.
  virtual void submitted(StreamQueue& queue) noexcept = 0;
  /// Returns when `ticket` is complete. Called with the mutex held, by any host thread, never by an operation.
  virtual void wait(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) = 0;
  /// The stream is drained and gets no more work. Without the mutex.
  virtual void closed(StreamQueue& queue) noexcept = 0;
  /// See Backend::host_wait. Without the mutex.
  virtual void host_wait(const HostWork& work) = 0;
};

using ExecutorFactory = std::function<std::unique_ptr<StreamExecutor>(StreamTable&)>;

/// One worker thread a stream.
[[nodiscard]] std::unique_ptr<StreamExecutor> make_threads_executor(StreamTable& table);
/// No thread: whoever waits runs deferred work, in an order drawn from the seed.
[[nodiscard]] std::unique_ptr<StreamExecutor> make_seeded_executor(StreamTable& table, std::uint64_t seed);
/// Runs nothing: items are complete as they are issued.
[[nodiscard]] std::unique_ptr<StreamExecutor> make_no_executor(StreamTable& table);

}  // namespace headroom::detail
