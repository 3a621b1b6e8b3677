#pragma once

#include <headroom/schedule.hpp>

#include <vector>

namespace headroom::detail {

/// One visit of a path. `last`: the unit is not visited again in that phase of the micro-batch.
struct Visit {
  int unit = -1;
  Phase phase = Phase::forward;
  int repeat = 0;
  bool last = true;
};

[[nodiscard]] std::vector<Visit> visits_of(const PlanInput& input, Phase phase);

/// Throws: InvalidInput on what no schedule can be made of.
void check_input(const PlanInput& input);

/// Which lines are counted and waited for as reductions: with hybrid an all_reduce belongs to the reduce_scatter before
/// it.
[[nodiscard]] inline ScheduleOpKind reduction_kind(const PlanInput& input) {
  return input.strategy == ShardStrategy::no_shard ? ScheduleOpKind::all_reduce : ScheduleOpKind::reduce_scatter;
}

/// Whether the step's gradients are reduced in this micro-batch.
[[nodiscard]] inline bool reduces_in(const PlanInput& input, int micro) {
  return input.accumulation == Accumulation::sharded || micro + 1 == input.micro_batches;
}

[[nodiscard]] inline std::size_t index_of(int unit) { return static_cast<std::size_t>(unit); }
[[nodiscard]] inline const ScheduleUnit& unit_at(const PlanInput& input, int unit) {
  return input.units.at(index_of(unit));
}

}  // namespace headroom::detail
