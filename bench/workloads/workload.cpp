#include "workloads/workload.hpp"

#include "options/input_error.hpp"
#include "workloads/chain.hpp"
#include "workloads/gpt.hpp"

#include <limits>

namespace headroom::bench {
namespace {

/// A gain multiplies every number of an activation in one matrix product, whose rows BLAS counts in 32 bits.
void check_irregular(const Config& config) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const double numel = static_cast<double>(config.micro_batch) * static_cast<double>(config.seq) *
                       static_cast<double>(config.model.width);
  if (numel > kMost) {
    throw bad_input("--micro-batch, --seq and --width",
                    "at most 2^31 - 1 elements of one activation with --workload irregular", std::to_string(numel));
  }
}

}  // namespace

StepPlan Workload::plan_step(std::int64_t /*step*/, std::uint64_t data_cursor, const TokenData& /*data*/) const {
  return {{.data_cursor = data_cursor}, 0};
}

std::unique_ptr<Workload> make_workload(const Config& config) {
  switch (config.workload) {
    case WorkloadKind::irregular:
      check_irregular(config);
      return std::make_unique<Irregular>(config.model, config.recompute);
    case WorkloadKind::branching:
      return std::make_unique<Branching>(config.model, config.seq, config.branches, config.recompute);
    case WorkloadKind::gpt: break;
  }
  return std::make_unique<Gpt>(config.model, config.wrap, config.recompute);
}

void add_units(const Workload& workload, ParameterManager& parameters) {
  for (const UnitSpec& unit : workload.units()) parameters.add_unit(unit.name, unit.parameters);
  for (const PathSpec& path : workload.paths()) {
    parameters.declare_path(path.name, path.forward, {path.forward.rbegin(), path.forward.rend()});
  }
}

}  // namespace headroom::bench
