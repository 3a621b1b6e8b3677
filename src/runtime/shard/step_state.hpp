#pragma once

#include "runtime/shard/manager_state.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace headroom::detail {

[[nodiscard]] inline bool is_visit(const ScheduleOp& op) noexcept {
  return op.kind == ScheduleOpKind::forward || op.kind == ScheduleOpKind::backward;
}

/// A step on its way through its schedule. `cursor` is the next operation that was not issued.
struct StepState {
  enum class Status : std::uint8_t { open, abandoned, closed };

  ManagerState* manager = nullptr;
  const PlannedSchedule* plan = nullptr;  ///< None: the path's visits are not known; each is agreed when it comes.
  std::vector<ScheduleOp> visited;        ///< Without a plan: the lines of the visits so far.
  StepOptions options;
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  std::size_t cursor = 0;
  Status status = Status::open;
  bool visiting = false;  ///< A lease is out, for the visit issued last.
  bool draining = false;  ///< A fault: the rest is issued for the peers' sake.
  std::size_t visit = 0;  ///< That visit's operation.
  std::uint64_t refusals_before = 0;

  /// A gradient whose reduction was issued and not waited for.
  struct Reducing {
    int unit = -1, micro = 0;
    bool counts = false;  ///< As a gradient set: it does not lie in the gradient shard.
    Buffer gradient = {};
    Ticket begun = 0, computed = 0, reduced = 0;
  };
  std::deque<Reducing> reducing;  ///< Oldest first.

  Buffer drain_set, drain_gradient;  ///< The reserve, while an observed step is drained.

  [[nodiscard]] const std::vector<ScheduleOp>& ops() const noexcept {
    return plan != nullptr ? plan->schedule.ops() : visited;
  }
};

}  // namespace headroom::detail
