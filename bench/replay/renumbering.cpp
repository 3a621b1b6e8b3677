#include "replay/renumbering.hpp"

#include <headroom/error.hpp>

#include <string>

namespace headroom::bench {
namespace {

bool names_allocation(AllocatorEvent::Kind kind) {
  using Kind = AllocatorEvent::Kind;
  return kind == Kind::alloc || kind == Kind::free_requested || kind == Kind::free_completed || kind == Kind::view ||
         kind == Kind::view_drop || kind == Kind::retag || kind == Kind::use;
}

}  // namespace

std::span<const AllocatorEvent> Renumbering::apply(std::span<const AllocatorEvent> events) {
  renumbered_.assign(events.begin(), events.end());
  for (AllocatorEvent& event : renumbered_) {
    if (!names_allocation(event.kind)) continue;
    if (event.kind == AllocatorEvent::Kind::alloc) {
      if (unused_.empty()) unused_.push_back(count_++);
      numbers_[event.allocation] = unused_.back();
      unused_.pop_back();
    }
    const auto found = numbers_.find(event.allocation);
    if (found == numbers_.end()) {
      throw InvalidInput("recorded event " + std::to_string(event.number) + " names an allocation that is not live");
    }
    event.allocation = found->second;
    if (event.kind != AllocatorEvent::Kind::free_completed) continue;
    unused_.push_back(found->second);
    numbers_.erase(found);
  }
  return renumbered_;
}

}  // namespace headroom::bench
