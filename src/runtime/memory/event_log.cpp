#include "runtime/memory/event_log.hpp"

#include <algorithm>

namespace headroom::detail {

void EventLog::enter_chunk() {
  const std::size_t chunk = position_ / kChunk;
  if (chunk == chunks_.size()) {
    chunks_.push_back(std::make_unique<AllocatorEvent[]>(std::min(kChunk, ring_ - chunk * kChunk)));
  }
  chunk_ = chunks_[chunk].get();
}

std::uint32_t EventLog::intern(std::string_view name) {
  const auto place = reinterpret_cast<std::uintptr_t>(name.data());
  Recent& recent = recent_[(place ^ (place >> 6U)) % recent_.size()];
  if (recent.text == name.data() && recent.text != nullptr && names_[recent.id] == name) return recent.id;
  auto found = index_.find(name);
  if (found == index_.end()) {
    const auto id = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    found = index_.emplace(std::string(name), id).first;
  }
  recent = {name.data(), found->second};
  return found->second;
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
