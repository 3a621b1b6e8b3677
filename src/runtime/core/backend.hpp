#pragma once

#include <headroom/stream.hpp>
#include <headroom/trace.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>

#include "runtime/core/wait_log.hpp"

namespace headroom::detail {

/// Work that the calling host thread waits for: `poll` until done, `pause` between two polls (see Operation).
struct HostWork {
  std::function<Progress()> poll;
  std::function<void(std::chrono::microseconds)> pause;
};

/// The seam between the runtime and a kind of device. Chosen by which .cpp is linked; above it there is no wall clock,
/// no thread and no real pointer arithmetic. Thread-safety: every member may be called from any thread.
class Backend : public std::enable_shared_from_this<Backend> {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual DeviceKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
  [[nodiscard]] virtual Trace& trace() noexcept = 0;

  // Streams: what StreamRef says.
  virtual StreamId create_stream(const StreamOptions& options) = 0;
  virtual void destroy_stream(StreamId stream) noexcept = 0;  ///< Drains first.
  virtual Ticket enqueue(StreamId stream, Operation operation) = 0;
  virtual Ticket mark(StreamId stream) = 0;
  [[nodiscard]] virtual Ticket issued(StreamId stream) const = 0;
  /// What issued() reads, for callers that ask often. Valid as long as the backend.
  [[nodiscard]] virtual const std::atomic<Ticket>& issued_counter(StreamId stream) const = 0;
  [[nodiscard]] virtual bool complete(StreamId stream, Ticket ticket) const = 0;
  virtual void wait(StreamId consumer, StreamId producer, Ticket ticket) = 0;
  [[nodiscard]] virtual Ticket knows(StreamId consumer, StreamId producer) const = 0;
  /// The highest ticket that a synchronize has returned for, or that such a ticket is ordered after.
  [[nodiscard]] virtual Ticket seen(StreamId stream) const = 0;
  [[nodiscard]] virtual const WaitLog& waits() const noexcept = 0;
  virtual void synchronize(StreamId stream, Ticket ticket) = 0;
  [[nodiscard]] virtual bool failed(StreamId stream) const = 0;

  /// Blocks the caller until work.poll() says done, letting deferred stream work run meanwhile. Rethrows what poll
  /// throws.
  virtual void host_wait(const HostWork& work) = 0;

  // Memory: one reserved address range per allocator region, committed page by page from its start.
  [[nodiscard]] virtual std::size_t page_bytes() const noexcept = 0;
  [[nodiscard]] virtual MemoryInfo memory_info() const = 0;
  /// Address space only. Throws: OutOfMemory.
  [[nodiscard]] virtual std::byte* reserve(std::size_t bytes) = 0;
  virtual void unreserve(std::byte* base, std::size_t bytes) noexcept = 0;
  /// Backs [at, at + bytes), whole pages, with memory that is touched now. False where the device has none left.
  [[nodiscard]] virtual bool commit(std::byte* at, std::size_t bytes) noexcept = 0;
  virtual void decommit(std::byte* at, std::size_t bytes) noexcept = 0;
};

[[nodiscard]] std::shared_ptr<Backend> make_host_backend(const HostOptions& options);
/// Linked from backend_cuda.cpp or backend_no_cuda.cpp. Throws: DeviceError.
[[nodiscard]] std::shared_ptr<Backend> make_cuda_backend(int index);
[[nodiscard]] int cuda_device_count() noexcept;

}  // namespace headroom::detail
