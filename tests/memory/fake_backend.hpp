#pragma once

#include <headroom/allocator.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/stream_order.hpp"

namespace headroom::test {

/// A device without memory or workers: addresses are numbers, work completes when the test, or a host wait, says so.
/// Commits can be made to fail. Thread-safe.
class FakeBackend final : public detail::Backend {
 public:
  static constexpr std::size_t kPage = 4096;

  explicit FakeBackend(std::size_t total_bytes = std::size_t{1} << 30U) : total_bytes_(total_bytes) {}

  // What tests steer and see.
  std::size_t fail_commit_from = SIZE_MAX;  ///< The n-th commit, from 0, and the later ones up to fail_commit_count.
  std::size_t fail_commit_count = SIZE_MAX;
  std::size_t commits = 0, synchronized = 0;
  std::map<const std::byte*, std::size_t> committed;                                                   ///< By page.
  std::size_t fail_mark_from = SIZE_MAX, fail_wait_from = SIZE_MAX, fail_synchronize_from = SIZE_MAX;  ///< And later.
  std::size_t fail_reserve_at = SIZE_MAX;
  std::size_t marks = 0, given_waits = 0, reserves = 0;
  std::int64_t clock_step = 0;  ///< What the clock gains, or loses, when it is read.
  void set_now(std::int64_t now) { now_ = now; }
  void finish(StreamId stream) { streams_.at(stream).completed = streams_.at(stream).issued; }

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::host; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::int64_t now_ns() const noexcept override { return now_.fetch_add(clock_step) + clock_step; }
  [[nodiscard]] Trace& trace() noexcept override { return trace_; }

  StreamId create_stream(const StreamOptions& /*options*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.emplace_back();
    return static_cast<StreamId>(streams_.size() - 1);
  }
  void destroy_stream(StreamId stream) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_[stream].completed = streams_[stream].seen = streams_[stream].issued;
    streams_[stream].closed = true;
    waits_.note_end();
  }
  Ticket enqueue(StreamId stream, Operation /*operation*/) override { return mark(stream); }
  Ticket mark(StreamId stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (marks++ >= fail_mark_from) throw std::runtime_error("an event that cannot be recorded");
    return issue(stream);
  }
  [[nodiscard]] Ticket issued(StreamId stream) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_.at(stream).issued;
  }
  [[nodiscard]] const std::atomic<Ticket>& issued_counter(StreamId stream) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_.at(stream).issued;
  }
  [[nodiscard]] Ticket seen(StreamId stream) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_.at(stream).seen;
  }
  [[nodiscard]] bool complete(StreamId stream, Ticket ticket) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_.at(stream).completed >= ticket;
  }
  void wait(StreamId consumer, StreamId producer, Ticket ticket) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ticket > streams_.at(producer).issued) throw std::logic_error("a ticket that was not issued");
    if (ticket == 0 || consumer == producer) return;
    if (given_waits++ >= fail_wait_from) throw std::runtime_error("a wait that cannot be enqueued");
    const std::vector<Ticket> learnt = row_at(producer, ticket);
    std::vector<Ticket> row = row_at(consumer, streams_.at(consumer).issued);
    row.resize(streams_.size(), 0);
    for (std::size_t i = 0; i < learnt.size(); ++i) row[i] = std::max(row[i], learnt[i]);
    row[producer] = std::max(row[producer], ticket);
    auto& history = streams_[consumer].history;
    if (history.size() == history.capacity()) history.reserve(2 * history.size() + 8);
    const Ticket at = issue(consumer);
    history.emplace_back(at, std::move(row));
    waits_.add({consumer, at, producer, ticket});
  }
  [[nodiscard]] Ticket knows(StreamId consumer, StreamId producer) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Queue& queue = streams_.at(consumer);
    if (consumer == producer) return queue.issued;
    if (streams_.at(producer).closed) return streams_.at(producer).issued;
    if (queue.history.empty() || queue.history.back().second.size() <= producer) return 0;
    return queue.history.back().second[producer];
  }
  [[nodiscard]] const detail::WaitLog& waits() const noexcept override { return waits_; }
  void synchronize(StreamId stream, Ticket ticket) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (synchronized++ >= fail_synchronize_from) throw std::runtime_error("work that failed");
    std::vector<Ticket> row = row_at(stream, ticket);
    row.resize(streams_.size(), 0);
    row[stream] = std::max(row[stream], ticket);
    for (std::size_t i = 0; i < row.size(); ++i) {
      streams_[i].completed = std::max(streams_[i].completed, row[i]);
      streams_[i].seen = std::max(streams_[i].seen, row[i]);
    }
    waits_.add({detail::StreamOrder::kHost, 0, stream, ticket});
  }
  [[nodiscard]] bool failed(StreamId /*stream*/) const override { return false; }
  void host_wait(const detail::HostWork& work) override {
    for (Queue& queue : streams_) queue.completed = queue.issued;
    while (work.poll() != Progress::done) {
    }
  }

  [[nodiscard]] std::size_t page_bytes() const noexcept override { return kPage; }
  [[nodiscard]] MemoryInfo memory_info() const override { return {total_bytes_, total_bytes_}; }
  [[nodiscard]] std::byte* reserve(std::size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reserves++ == fail_reserve_at) throw OutOfMemory("no addresses left", {});
    const std::uintptr_t base = next_;
    next_ += bytes + kPage;
    return reinterpret_cast<std::byte*>(base);
  }
  void unreserve(std::byte* /*base*/, std::size_t /*bytes*/) noexcept override { --reserves; }
  [[nodiscard]] bool commit(std::byte* at, std::size_t bytes) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t number = commits++;
    if (number >= fail_commit_from && number - fail_commit_from < fail_commit_count) return false;
    if (committed.size() * kPage + bytes > total_bytes_) return false;
    try {
      std::map<const std::byte*, std::size_t> pages;
      for (std::size_t page = 0; page < bytes; page += kPage) pages.emplace(at + page, kPage);
      committed.merge(pages);
      if (!pages.empty()) std::terminate();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void decommit(std::byte* at, std::size_t bytes) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t page = 0; page < bytes; page += kPage) {
      if (committed.erase(at + page) != 1) std::terminate();
    }
  }

 private:
  struct Queue {
    std::atomic<Ticket> issued = 0;
    Ticket completed = 0, seen = 0;
    bool closed = false;
    std::vector<std::pair<Ticket, std::vector<Ticket>>> history;  ///< What is known from a ticket on.
  };
  Ticket issue(StreamId stream) {
    if (streams_.at(stream).closed) throw std::logic_error("the stream is destroyed");
    return ++streams_[stream].issued;
  }
  [[nodiscard]] std::vector<Ticket> row_at(StreamId stream, Ticket ticket) const {
    const auto& history = streams_[stream].history;
    for (auto entry = history.rbegin(); entry != history.rend(); ++entry) {
      if (entry->first <= ticket) return entry->second;
    }
    return {};
  }

  mutable std::mutex mutex_;
  std::size_t total_bytes_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32U;
  std::deque<Queue> streams_;  // so that counters stay where they are
  mutable std::atomic<std::int64_t> now_ = 0;
  Trace trace_;
  detail::WaitLog waits_;
};

/// A fake device with streams, and requests in few words.
struct FakeDevice {
  explicit FakeDevice(std::size_t total_bytes = std::size_t{1} << 30U)
      : backend(std::make_shared<FakeBackend>(total_bytes)), device(backend) {}
  std::shared_ptr<FakeBackend> backend;
  Device device;
};

inline AllocationRequest request(std::size_t bytes, Category category = Category::activation,
                                 std::string_view name = "x", Region region = Region::transients) {
  AllocationRequest result;
  result.bytes = bytes;
  result.category = category;
  result.name = name;
  result.region = region;
  return result;
}

}  // namespace headroom::test
