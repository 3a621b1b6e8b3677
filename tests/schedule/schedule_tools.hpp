#pragma once

#include <headroom/schedule.hpp>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace headroom::testing {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Units 0, 1, ... visited in order, and in backward in reverse; all of one size.
inline PlanInput equal_units(int count, std::size_t bytes = 64 * kMiB) {
  PlanInput input;
  for (int i = 0; i < count; ++i) {
    input.units.push_back({std::to_string(i), bytes, bytes});
    input.forward.push_back(i);
    input.backward.insert(input.backward.begin(), i);
  }
  return input;
}

/// The first unit is visited again at the end of forward, as a tied embedding is: 0 1 2 0, then 0 2 1 0.
inline PlanInput tied_units(int count, std::size_t bytes = 64 * kMiB) {
  PlanInput input = equal_units(count, bytes);
  input.units.front().name = "embedding";
  input.forward.push_back(0);
  input.backward.insert(input.backward.begin(), 0);
  return input;
}

/// Makes the units' sizes unequal by a seeded draw, from 1 to 64 MiB.
inline void draw_sizes(PlanInput& input, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (ScheduleUnit& unit : input.units) {
    unit.parameter_bytes = (1 + random() % 64) * kMiB;
    unit.gradient_bytes = random() % 2 == 0 ? unit.parameter_bytes : 2 * unit.parameter_bytes;
  }
}

constexpr ShardStrategy kStrategies[] = {ShardStrategy::full_shard, ShardStrategy::shard_grad_op,
                                         ShardStrategy::no_shard, ShardStrategy::hybrid};

inline const char* name_of(ShardStrategy strategy) {
  switch (strategy) {
    case ShardStrategy::full_shard: return "full_shard";
    case ShardStrategy::shard_grad_op: return "shard_grad_op";
    case ShardStrategy::no_shard: return "no_shard";
    case ShardStrategy::hybrid: return "hybrid";
  }
  return "?";
}

/// Freezes the units whose bit is set.
inline void freeze(PlanInput& input, unsigned mask) {
  for (std::size_t unit = 0; unit < input.units.size(); ++unit) {
    if ((mask >> unit % 32) % 2 != 0) input.units[unit].gradient_bytes = 0;
  }
}

inline void draw_strategy(PlanInput& input, std::mt19937& random) {
  input.strategy = kStrategies[random() % 4];
  input.accumulation = static_cast<Accumulation>(random() % 2);
  input.micro_batches = 1 + static_cast<int>(random() % 3);
  if (random() % 3 == 0) freeze(input, static_cast<unsigned>(random()));
}

inline std::string describe(const PlanInput& input, const SchedulePolicy& policy) {
  return policy.describe() + "; " + std::to_string(input.units.size()) + " units, " +
         std::to_string(input.forward.size()) + " visits, accumulate " + std::to_string(input.micro_batches) +
         (input.accumulation == Accumulation::full ? " full, " : " sharded, ") + name_of(input.strategy) +
         (input.first_step ? ", first step" : "");
}

inline std::vector<std::string> lines_of(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (const ScheduleOp& op : schedule.ops()) lines.push_back(to_text(op, schedule.input()));
  return lines;
}

/// Index of the first line that reads so; throws if there is none.
inline std::size_t line_of(const Schedule& schedule, const std::string& line) {
  const std::vector<std::string> lines = lines_of(schedule);
  const auto found = std::find(lines.begin(), lines.end(), line);
  if (found == lines.end()) throw std::logic_error("the text has no line '" + line + "'");
  return static_cast<std::size_t>(found - lines.begin());
}

/// The schedule with one line moved so that it becomes line `to`.
inline Schedule moved(const Schedule& schedule, std::size_t from, std::size_t to) {
  std::vector<ScheduleOp> ops = schedule.ops();
  const ScheduleOp op = ops[from];
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(from));
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(to), op);
  return {ops, schedule.input()};
}

inline bool is_valid(const Schedule& schedule) {
  try {
    schedule.validate();
    return true;
  } catch (const InvalidInput&) {
    return false;
  }
}

}  // namespace headroom::testing
