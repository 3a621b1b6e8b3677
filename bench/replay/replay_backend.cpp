#include "replay/replay_backend.hpp"

#include <algorithm>

namespace headroom::bench {

void ReplayBackend::grow_to(StreamId stream) {
  while (streams_.size() <= stream) {
    streams_.emplace_back();
    order_.add_stream();
  }
}

StreamRef ReplayBackend::stream(StreamId id) {
  grow_to(id);
  return {this, id};
}

StreamId ReplayBackend::create_stream(const StreamOptions& /*options*/) {
  const auto id = static_cast<StreamId>(streams_.size());
  grow_to(id);
  return id;
}

void ReplayBackend::set_issued(StreamId stream, Ticket ticket) {
  grow_to(stream);
  streams_[stream].issued = ticket;
}

void ReplayBackend::set_mark(StreamId stream, Ticket ticket) {
  grow_to(stream);
  Record& record = streams_[stream];
  record.mark = ticket;
  record.issued = std::max(record.issued.load(), ticket);
}

void ReplayBackend::add_wait(const detail::IssuedWait& wait) {
  grow_to(wait.producer);
  if (wait.consumer == detail::StreamOrder::kHost) {
    order_.add_host_wait(wait.producer, wait.ticket);
  } else {
    grow_to(wait.consumer);
    order_.add_wait(wait.consumer, wait.at, wait.producer, wait.ticket);
  }
  waits_.add(wait);
}

void ReplayBackend::end_call() {
  own_waits_.clear();
  pages_.clear();
}

/// By the allocator itself. One that was not recorded gets the next position of its stream: the log shows it.
void ReplayBackend::wait(StreamId consumer, StreamId producer, Ticket ticket) {
  detail::IssuedWait wait{consumer, streams_[consumer].issued + 1, producer, ticket};
  if (!own_waits_.empty()) {
    wait.at = own_waits_.front().at;
    own_waits_.pop_front();
  }
  add_wait(wait);
}

Ticket ReplayBackend::knows(StreamId consumer, StreamId producer) const {
  if (consumer == producer) return streams_[consumer].issued;
  return consumer < streams_.size() && producer < streams_.size() ? order_.knows(consumer, producer) : 0;
}

void ReplayBackend::synchronize(StreamId stream, Ticket ticket) {
  add_wait({detail::StreamOrder::kHost, 0, stream, ticket});
  if (on_host_wait) on_host_wait();
}

void ReplayBackend::host_wait(const detail::HostWork& work) {
  while (work.poll() == Progress::blocked) {
  }
}

MemoryInfo ReplayBackend::memory_info() const { return {options_.layout.region_bytes, options_.layout.region_bytes}; }

std::byte* ReplayBackend::reserve(std::size_t bytes) {
  const int number = reserved_++;
  std::uint64_t base = 0;
  if (!options_.as_recorded) {
    base = static_cast<std::uint64_t>(number + 1) * (bytes + options_.layout.page_bytes);
  } else if (number < kRegionCount) {
    base = options_.layout.region_base[static_cast<std::size_t>(number)];
  } else {
    base = options_.layout.slot_base;
  }
  return reinterpret_cast<std::byte*>(base);  // NOLINT(performance-no-int-to-ptr): never read
}

bool ReplayBackend::commit(std::byte* at, std::size_t bytes) noexcept {
  if (!options_.as_recorded) return true;
  const bool had = !pages_.empty() && pages_.front().address == reinterpret_cast<std::uintptr_t>(at) &&
                   pages_.front().bytes == bytes;
  if (had) pages_.pop_front();
  return had;
}

}  // namespace headroom::bench
