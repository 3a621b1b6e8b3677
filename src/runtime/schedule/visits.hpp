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

[[nodiscard]] inline std::size_t index_of(int unit) { return static_cast<std::size_t>(unit); }
[[nodiscard]] inline const ScheduleUnit& unit_at(const PlanInput& input, int unit) {
  return input.units.at(index_of(unit));
}

}  // namespace headroom::detail
