#pragma once

#include <memory>

#include "runtime/core/backend.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/core/stream_order.hpp"
#include "runtime/core/stream_queue.hpp"

namespace headroom::detail {

/// The stream half of a Backend whose streams are queues in this process: tickets, waits, what is known, failures.
/// The executor decides when things run, and what time it is.
class StreamMachine : public Backend {
 public:
  explicit StreamMachine(const ExecutorFactory& make_executor);
  ~StreamMachine() override;

  [[nodiscard]] std::int64_t now_ns() const noexcept final { return executor_->now_ns(); }
  [[nodiscard]] Trace& trace() noexcept final { return trace_; }

  StreamId create_stream(const StreamOptions& options) final;
  void destroy_stream(StreamId stream) noexcept final;
  Ticket enqueue(StreamId stream, Operation operation) override;
  Ticket mark(StreamId stream) final;
  [[nodiscard]] Ticket issued(StreamId stream) const final;
  [[nodiscard]] const std::atomic<Ticket>& issued_counter(StreamId stream) const final;
  [[nodiscard]] bool complete(StreamId stream, Ticket ticket) const final;
  void wait(StreamId consumer, StreamId producer, Ticket ticket) final;
  [[nodiscard]] Ticket knows(StreamId consumer, StreamId producer) const final;
  [[nodiscard]] Ticket seen(StreamId stream) const final;
  [[nodiscard]] const WaitLog& waits() const noexcept final { return waits_; }
  void synchronize(StreamId stream, Ticket ticket) final;
  [[nodiscard]] bool failed(StreamId stream) const final;
  void host_wait(const HostWork& work) final;

 private:
  /// Unlocks.
  Ticket append(std::unique_lock<std::mutex>& lock, StreamQueue& queue, QueueItem item);
  [[nodiscard]] StreamQueue& open_queue(StreamId stream) const;  ///< Throws: std::logic_error.
  StreamQueue& check_issued(StreamId stream, Ticket ticket) const;

  Trace trace_;
  mutable StreamTable table_;
  StreamOrder order_;
  WaitLog waits_;
  std::unique_ptr<StreamExecutor> executor_;
};

}  // namespace headroom::detail
