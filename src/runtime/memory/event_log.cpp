#include "runtime/memory/event_log.hpp"

#include <algorithm>

namespace headroom::detail {

std::uint32_t EventLog::intern(std::string_view name) {
  const auto place = reinterpret_cast<std::uintptr_t>(name.data());
  Recent& recent = recent_[(place ^ (place >> 6U)) % recent_.size()];
  if (recent.text == name.data() && recent.text != nullptr && names_[recent.id] == name) return recent.id;
  auto found = index_.find(name);
  if (found == index_.end()) {
    const auto id = static_cast<std::uint32_t>(names_.size());
    found = index_.emplace(std::string(name), id).first;
    try {
      names_.emplace_back(name);
    } catch (...) {
      index_.erase(found);
      throw;
    }
  }
  recent = {name.data(), found->second};
  return found->second;
}

std::vector<AllocatorEvent> EventLog::since(std::uint64_t number) const {
  std::vector<AllocatorEvent> result;
  number = std::max(number, dropped());
  if (number < count_) result.reserve(static_cast<std::size_t>(count_ - number));
  for (; number < count_; ++number) result.push_back(events_[static_cast<std::size_t>(number % capacity_)]);
  return result;
}

}  // namespace headroom::detail
