#pragma once

#include <headroom/device.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace headroom {

using StreamId = std::uint32_t;  ///< Dense within a device, never reused.
using Ticket = std::uint64_t;    ///< Position in a stream's work; the first operation has ticket 1.

enum class StreamRole : std::uint8_t { compute, gather, reduce, transfer };

enum class Progress : std::uint8_t { done, blocked };

/// A piece of work as a value. The host runs `host`, or calls `poll` until it says done (a collective: work that
/// depends on a peer must not block inside one call); between two polls it may call `pause`, which returns early where
/// progress has become possible. CUDA calls `cuda` with the native stream. The simulated device adds the cost.
struct Operation {
  const char* name = "";  ///< A string with static lifetime.
  int unit = -1;          ///< The unit it works for, or -1.
  double flops = 0, bytes = 0;
  std::function<void()> host = nullptr;
  std::function<Progress()> poll = nullptr;
  std::function<void(std::chrono::microseconds)> pause = nullptr;
  std::function<void(void* native_stream)> cuda = nullptr;
  bool always = false;  ///< `host` is called even where nothing runs (Executor::none): the host waits for its effect.
};

class Event;

/// A non-owning handle to a Stream; trivially copyable. Every asynchronous function takes one as its last parameter.
class StreamRef {
 public:
  StreamRef(detail::Backend* backend, StreamId id) noexcept : backend_(backend), id_(id) {}

  [[nodiscard]] StreamId id() const noexcept { return id_; }
  [[nodiscard]] Device device() const;
  /// Order: after all earlier work of this stream. Never blocks. An operation that throws poisons its stream: its later
  /// work is skipped (its tickets still complete) and the exception is rethrown at the next synchronize.
  Ticket enqueue(Operation operation) const;
  /// A fresh ticket that covers all work on the stream so far, launches that Headroom did not make included.
  Ticket mark() const;
  [[nodiscard]] Ticket issued() const;
  [[nodiscard]] bool complete(Ticket ticket) const;
  /// Orders later work of this stream after `ticket` of `producer`, on the device. Does not block the caller.
  void wait(StreamRef producer, Ticket ticket) const;
  void wait(const Event& event) const;
  /// The highest ticket of `producer` that work enqueued here from now on is ordered after, transitively.
  [[nodiscard]] Ticket knows(StreamRef producer) const;
  /// Blocks the caller until `ticket` (default: all work so far) is complete. Throws: the first error of that work,
  /// once.
  void synchronize() const;
  void synchronize(Ticket ticket) const;
  [[nodiscard]] bool failed() const;  ///< An operation threw and that error was not collected yet, or work is skipped.

  [[nodiscard]] detail::Backend& backend() const noexcept { return *backend_; }
  friend bool operator==(const StreamRef&, const StreamRef&) noexcept = default;

 private:
  detail::Backend* backend_;
  StreamId id_;
};

struct StreamOptions {
  StreamRole role = StreamRole::compute;
  std::string name = "compute";
};

/// Owns a FIFO of asynchronous work on one device. Move-only; the destructor drains and never throws.
class Stream {
 public:
  explicit Stream(const Device& device, const StreamOptions& options = {});
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  [[nodiscard]] StreamRef ref() const noexcept { return {&device_.backend(), id_}; }
  operator StreamRef() const noexcept { return ref(); }  // NOLINT(google-explicit-constructor): a view of its owner

 private:
  Device device_;
  StreamId id_ = 0;
  bool owns_ = false;
};

/// A point in a stream's work that other streams, or the host, can wait for. Re-recordable; ready if never recorded.
class Event {
 public:
  void record(StreamRef stream);
  [[nodiscard]] bool ready() const;
  void synchronize() const;

 private:
  friend class StreamRef;
  detail::Backend* backend_ = nullptr;
  StreamId stream_ = 0;
  Ticket ticket_ = 0;
};

}  // namespace headroom
