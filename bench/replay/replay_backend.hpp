#pragma once

#include <headroom/allocator.hpp>

#include "runtime/core/backend.hpp"
#include "runtime/core/stream_order.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <optional>

namespace headroom::bench {

/// A device without memory, streams or time: addresses are numbers, and what an allocator asks of it is answered as
/// recorded, by whoever drives the replay. Not thread-safe.
class ReplayBackend final : public detail::Backend {
 public:
  struct Pages {
    std::uint64_t address = 0, bytes = 0;
  };
  struct Options {
    AllocatorLayout layout;
    bool as_recorded = true;  ///< Same addresses, commits, own waits; else pages are had up to the limit.
  };
  explicit ReplayBackend(const Options& options) : options_(options) {}

  // What the driver says before a call.
  void set_now(std::int64_t now_ns) noexcept { now_ns_ = now_ns; }
  void set_issued(StreamId stream, Ticket ticket);
  void set_mark(StreamId stream, Ticket ticket);  ///< What a mark gives next.
  void add_wait(const detail::IssuedWait& wait);
  void expect_own_wait(const detail::IssuedWait& wait) { own_waits_.push_back(wait); }
  void expect_pages(const Pages& pages) { pages_.push_back(pages); }
  void end_call();  ///< Forgets what was expected of the call and did not come.
  /// Called within synchronize.
  std::function<void()> on_host_wait = nullptr;

  [[nodiscard]] StreamRef stream(StreamId id);

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::host; }
  [[nodiscard]] std::string name() const override { return "replay"; }
  [[nodiscard]] std::int64_t now_ns() const noexcept override { return now_ns_; }
  [[nodiscard]] Trace& trace() noexcept override { return trace_; }

  StreamId create_stream(const StreamOptions& options) override;
  void destroy_stream(StreamId /*stream*/) noexcept override {}
  Ticket enqueue(StreamId stream, Operation /*operation*/) override { return mark(stream); }
  Ticket mark(StreamId stream) override { return streams_[stream].mark; }
  [[nodiscard]] Ticket issued(StreamId stream) const override { return streams_[stream].issued; }
  [[nodiscard]] const std::atomic<Ticket>& issued_counter(StreamId stream) const override {
    return streams_[stream].issued;
  }
  [[nodiscard]] Ticket seen(StreamId stream) const override { return order_.seen(stream); }
  [[nodiscard]] bool complete(StreamId /*stream*/, Ticket /*ticket*/) const override { return true; }
  void wait(StreamId consumer, StreamId producer, Ticket ticket) override;
  [[nodiscard]] Ticket knows(StreamId consumer, StreamId producer) const override;
  [[nodiscard]] const detail::WaitLog& waits() const noexcept override { return waits_; }
  void synchronize(StreamId stream, Ticket ticket) override;
  [[nodiscard]] bool failed(StreamId /*stream*/) const override { return false; }
  void host_wait(const detail::HostWork& work) override;

  [[nodiscard]] std::size_t page_bytes() const noexcept override { return options_.layout.page_bytes; }
  [[nodiscard]] MemoryInfo memory_info() const override;
  [[nodiscard]] std::byte* reserve(std::size_t bytes) override;
  void unreserve(std::byte* /*base*/, std::size_t /*bytes*/) noexcept override {}
  [[nodiscard]] bool commit(std::byte* at, std::size_t bytes) noexcept override;
  void decommit(std::byte* /*at*/, std::size_t /*bytes*/) noexcept override {}

 private:
  struct Record {
    std::atomic<Ticket> issued = 0;
    Ticket mark = 0;
  };
  void grow_to(StreamId stream);

  Options options_;
  std::int64_t now_ns_ = 0;
  std::deque<Record> streams_;  ///< In place: the allocator reads them.
  detail::StreamOrder order_;
  detail::WaitLog waits_;
  std::deque<detail::IssuedWait> own_waits_;
  std::deque<Pages> pages_;
  int reserved_ = 0;  ///< Ranges so far.
  Trace trace_{0};
};

}  // namespace headroom::bench
