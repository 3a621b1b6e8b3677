#pragma once

#include <headroom/events.hpp>

#include <span>
#include <unordered_map>
#include <vector>

namespace headroom::bench {

/// Gives allocations small numbers in place of their ids, used again once a free is completed: replays index by them.
class Renumbering {
 public:
  /// The events with numbers; valid until the next call.
  [[nodiscard]] std::span<const AllocatorEvent> apply(std::span<const AllocatorEvent> events);

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> unused_;
  std::uint32_t count_ = 0;
  std::vector<AllocatorEvent> renumbered_;
};

}  // namespace headroom::bench
