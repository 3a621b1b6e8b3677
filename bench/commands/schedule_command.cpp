#include "commands/commands.hpp"
#include "options/input_error.hpp"
#include "workloads/workload.hpp"

#include <headroom/layout.hpp>
#include <headroom/schedule.hpp>

#include <cstdio>
#include <numeric>

namespace headroom::bench {
namespace {

// World size changes no line: without --ranks, any world in which something is sharded.
int world_of(const Config& config) {
  if (config.is_given("ranks")) return config.ranks;
  return config.strategy == ShardStrategy::hybrid ? 2 * config.hybrid_ranks : 2;
}

std::vector<ScheduleUnit> equal_units(int count) {
  std::vector<ScheduleUnit> units;
  for (int unit = 0; unit < count; ++unit) units.push_back({std::to_string(unit)});
  return units;
}

std::vector<ScheduleUnit> units_of(const Workload& workload, const Config& config, int world) {
  std::vector<ScheduleUnit> units;
  for (UnitSpec& unit : workload.units()) {
    const FlatLayout layout = FlatLayout::make(unit.name, std::move(unit.parameters), config.shard_ranks(world));
    units.push_back({unit.name, static_cast<std::size_t>(layout.padded_numel) * size_of(config.gathered),
                     static_cast<std::size_t>(layout.trainable.padded_numel) * sizeof(float)});
  }
  return units;
}

std::vector<PathSpec> paths_of(const Workload& workload, const Config& config, std::size_t units) {
  if (config.branches != Branches::known)
    throw bad_input("--branches", "known for a schedule that is printed before any step", "paths that steps decide");
  std::vector<PathSpec> paths = workload.paths();
  if (paths.empty()) {
    paths.push_back({"default", std::vector<int>(units)});
    std::iota(paths.front().forward.begin(), paths.front().forward.end(), 0);
  }
  return paths;
}

void print(const CommandLine& line, const PathSpec& path, PlanInput input) {
  input.forward = path.forward;
  input.backward.assign(path.forward.rbegin(), path.forward.rend());
  input.micro_batches = static_cast<int>(line.config.accumulate);
  input.strategy = line.config.strategy;
  input.accumulation = line.config.accumulation;
  input.first_step = line.schedule.first;
  std::fputs(line.config.policy()->plan(input).text().c_str(), stdout);
}

}  // namespace

void schedule_command(const CommandLine& line) {
  const Config& config = line.config;
  PlanInput input;
  input.world = world_of(config);
  if (line.schedule.units > 0) {
    input.units = equal_units(line.schedule.units);
    PathSpec path{"default", std::vector<int>(input.units.size())};
    std::iota(path.forward.begin(), path.forward.end(), 0);
    print(line, path, input);
    return;
  }
  const std::unique_ptr<Workload> workload = make_workload(config);
  input.units = units_of(*workload, config, input.world);
  const std::vector<PathSpec> paths = paths_of(*workload, config, input.units.size());
  for (const PathSpec& path : paths) {
    if (paths.size() > 1) std::fputs(("# path " + path.name + "\n").c_str(), stdout);
    print(line, path, input);
  }
}

}  // namespace headroom::bench
