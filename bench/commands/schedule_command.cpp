#include "commands/commands.hpp"
#include "io/hf_gpt2.hpp"

#include <headroom/layout.hpp>
#include <headroom/schedule.hpp>

#include <cstdio>
#include <numeric>

namespace headroom::bench {
namespace {

PlanInput equal_units(int count) {
  PlanInput input;
  for (int unit = 0; unit < count; ++unit) input.units.push_back({std::to_string(unit)});
  input.forward.resize(input.units.size());
  std::iota(input.forward.begin(), input.forward.end(), 0);
  input.backward.assign(input.forward.rbegin(), input.forward.rend());
  return input;
}

PlanInput units_of(const Config& config, int world) {
  PlanInput input;
  const std::vector<Gpt2Unit> units = gpt2_units(config.model, config.wrap);
  for (const Gpt2Unit& unit : units) {
    std::vector<ParameterSpec> parameters;
    for (const NamedShape& tensor : unit.tensors) parameters.push_back({tensor.name, tensor.shape});
    const FlatLayout layout = FlatLayout::make(unit.name, std::move(parameters), world);
    const std::size_t full_bytes = static_cast<std::size_t>(layout.padded_numel) * sizeof(float);
    const std::size_t shard_bytes = static_cast<std::size_t>(layout.shard_numel) * sizeof(float);
    input.units.push_back({unit.name, full_bytes, full_bytes, shard_bytes});
  }
  input.forward = gpt2_forward_path(units);
  input.backward = gpt2_backward_path(units);
  return input;
}

}  // namespace

void schedule_command(const CommandLine& line) {
  const Config& config = line.config;
  const int world = config.is_given("ranks") ? config.ranks : 2;
  PlanInput input = line.schedule.units > 0 ? equal_units(line.schedule.units) : units_of(config, world);
  input.micro_batches = static_cast<int>(config.accumulate);
  input.world = world;
  input.first_step = line.schedule.first;
  std::fputs(config.policy()->plan(input).text().c_str(), stdout);
}

}  // namespace headroom::bench
