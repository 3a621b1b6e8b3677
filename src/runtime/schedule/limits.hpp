#pragma once

#include <headroom/schedule.hpp>

#include <vector>

namespace headroom::detail {

/// Inserts the `throttle` lines of gather limit `limit` before the all_gathers of a step. `steady`: the step before had
/// the same lines, and what it released may still be outstanding.
[[nodiscard]] std::vector<ScheduleOp> limit_gathers(const std::vector<ScheduleOp>& ops, int limit, bool steady);

/// Inserts the `wait_reduce` lines of reduction limit `limit` before the backwards of a step.
[[nodiscard]] std::vector<ScheduleOp> limit_reductions(const std::vector<ScheduleOp>& ops, int limit);

}  // namespace headroom::detail
