#pragma once

#include <headroom/schedule.hpp>

#include <vector>

namespace headroom::detail {

/// How long one buffer of a schedule is needed. `first_op` allocates it and `freed_op` is the line after which compute
/// knows that its last use is over: the release, or the wait_reduce that covers its reduction.
struct Lifetime {
  SlotPlan::Slot::Use use = SlotPlan::Slot::Use::parameters;
  int unit = -1;
  std::size_t first_op = 0, freed_op = 0;
  /// Its first user, on the device, is ordered after every line of compute before this one. Another buffer's bytes may
  /// be taken if its freed_op is less.
  std::size_t known_op = 0;
  std::size_t bytes = 0;
};

/// Of a step, sorted by first_op. Throws: InvalidInput if the schedule is not valid.
[[nodiscard]] std::vector<Lifetime> lifetimes_of(const Schedule& schedule);

}  // namespace headroom::detail
