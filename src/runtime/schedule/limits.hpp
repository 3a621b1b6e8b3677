#pragma once

#include <headroom/schedule.hpp>

#include <optional>
#include <vector>

namespace headroom::detail {

/// Inserts the `throttle` lines of gather limit `limit` before the all_gathers of a step. `steady`: the step before had
/// the same lines, and what it released may still be outstanding.
[[nodiscard]] std::vector<ScheduleOp> limit_gathers(const std::vector<ScheduleOp>& ops, int limit, bool steady);

/// Inserts the `wait_reduce` lines of a step: before its backwards those of the reduction limit, if there is one, and
/// before its norm that of what is still outstanding. `counted`: the lines that are reductions.
[[nodiscard]] std::vector<ScheduleOp> wait_for_reductions(const std::vector<ScheduleOp>& ops, ScheduleOpKind counted,
                                                          std::optional<int> limit);

}  // namespace headroom::detail
