#include "runtime/memory/event_log.hpp"

#include <algorithm>

namespace headroom::detail {

std::uint64_t EventLog::add(AllocatorEvent event) {
  event.number = count_++;
  if (capacity_ == 0) return event.number;
  const std::size_t chunk = position_ / kChunk;
  if (chunk == chunks_.size()) {
    const std::size_t size = std::min(kChunk, capacity_ - chunk * kChunk);
    chunks_.push_back(std::make_unique<AllocatorEvent[]>(size));
  }
  chunks_[chunk][position_ % kChunk] = event;
  if (++position_ == capacity_) position_ = 0;
  return event.number;
}

std::uint32_t EventLog::intern(std::string_view name) {
  const auto found = index_.find(name);
  if (found != index_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  index_.emplace(std::string(name), id);
  return id;
}

std::vector<AllocatorEvent> EventLog::since(std::uint64_t number) const {
  std::vector<AllocatorEvent> result;
  number = std::max(number, dropped());
  if (number < count_) result.reserve(static_cast<std::size_t>(count_ - number));
  for (; number < count_; ++number) {
    const auto position = static_cast<std::size_t>(number % capacity_);
    result.push_back(chunks_[position / kChunk][position % kChunk]);
  }
  return result;
}

}  // namespace headroom::detail
