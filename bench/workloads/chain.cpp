#include "workloads/chain.hpp"

#include <array>
#include <numeric>

namespace headroom::bench {
namespace {

constexpr std::array<const char*, 2> kBranchPaths{"even", "odd"};

std::vector<Stage> irregular_stages(const ModelShape& model) {
  std::vector<Stage> stages{{Stage::Kind::embedding, "embedding"}};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string number = std::to_string(layer);
    stages.push_back({Stage::Kind::gain, std::string("gain.").append(number)});
    stages.push_back({Stage::Kind::mlp, std::string("narrow.").append(number), 4});
    if (layer != model.layers / 2) continue;
    stages.push_back({Stage::Kind::mlp, "wide", 16 * model.width});
    stages.push_back({Stage::Kind::projection, "projection"});
  }
  stages.push_back({Stage::Kind::head, "head"});
  return stages;
}

/// The last three are a, b and the head.
std::vector<Stage> branching_stages(const ModelShape& model) {
  std::vector<Stage> stages{{Stage::Kind::embedding, "embedding"}};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    stages.push_back({Stage::Kind::mlp, std::string("trunk.").append(std::to_string(layer)), 4 * model.width});
  }
  stages.push_back({Stage::Kind::mlp, "a", 8 * model.width});
  stages.push_back({Stage::Kind::mlp, "b", 2 * model.width});
  stages.push_back({Stage::Kind::head, "head"});
  return stages;
}

}  // namespace

Chain::Chain(const ModelShape& model, Recompute recompute, std::vector<Stage> stages)
    : model_(model), recompute_(recompute), stages_(std::move(stages)) {}

std::vector<UnitSpec> Chain::units() const {
  std::vector<UnitSpec> units;
  for (const Stage& stage : stages_) units.push_back({stage.name, parameters_of(stage, model_)});
  return units;
}

std::vector<int> Chain::visits(int /*branch*/) const {
  std::vector<int> all(stages_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Chain::run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) {
  const StageContext context{&tensors, &batch, model_.width, recompute_};
  const std::vector<int> path = visits(batch.branch);
  std::vector<StageState> states(stages_.size());
  Tensor x;
  for (const int index : path) {
    const auto at = static_cast<std::size_t>(index);
    UnitLease unit = step.forward(index);
    tensors.mark(index, "forward", operation_of(stages_[at]));
    x = stage_forward(stages_[at], context, unit, std::move(x), step.loss(), states[at]);
    unit.finish();
  }
  for (auto index = path.rbegin(); index != path.rend(); ++index) {
    const auto at = static_cast<std::size_t>(*index);
    UnitLease unit = step.backward(*index);
    tensors.mark(*index, "backward", operation_of(stages_[at]));
    x = stage_backward(stages_[at], context, unit, std::move(x), states[at]);
    states[at] = {};
    unit.finish();
  }
}

double Chain::model_flops_per_token(std::int64_t /*sequence*/) const {
  double flops = 0;
  for (int branch = 0; branch < branches(); ++branch) {
    for (const int stage : visits(branch)) {
      flops += bench::model_flops_per_token(stages_[static_cast<std::size_t>(stage)], model_);
    }
  }
  return flops / branches();
}

std::vector<GemmCall> Chain::gemm_calls(const BatchShape& shape) const {
  std::vector<GemmCall> calls;
  for (int branch = 0; branch < branches(); ++branch) {
    const std::vector<int> path = visits(branch);
    for (const int stage : path) {
      add_forward_gemms(stages_[static_cast<std::size_t>(stage)], model_, shape.tokens(), calls);
    }
    for (auto stage = path.rbegin(); stage != path.rend(); ++stage) {
      add_backward_gemms(stages_[static_cast<std::size_t>(*stage)], model_, recompute_, shape.tokens(), calls);
    }
  }
  return calls;
}

Irregular::Irregular(const ModelShape& model, Recompute recompute) : Chain(model, recompute, irregular_stages(model)) {}

Branching::Branching(const ModelShape& model, std::int64_t sequence, Branches branches, Recompute recompute)
    : Chain(model, recompute, branching_stages(model)), sequence_(sequence), branches_(branches) {}

std::vector<int> Branching::visits(int branch) const {
  std::vector<int> path(static_cast<std::size_t>(stage_count() - 3));
  std::iota(path.begin(), path.end(), 0);
  path.push_back(stage_count() - 3 + branch);
  path.push_back(stage_count() - 1);
  return path;
}

std::vector<PathSpec> Branching::paths() const {
  std::vector<PathSpec> declared;
  if (branches_ != Branches::data) declared.push_back({kBranchPaths[0], visits(0)});
  if (branches_ == Branches::known) declared.push_back({kBranchPaths[1], visits(1)});
  return declared;
}

StepPlan Branching::plan_step(std::int64_t step, std::uint64_t data_cursor, const TokenData& data) const {
  if (branches_ != Branches::data) {
    const int branch = static_cast<int>(step % 2);
    return {{.path = kBranchPaths.at(static_cast<std::size_t>(branch)), .data_cursor = data_cursor}, branch};
  }
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence_));
  std::vector<std::int32_t> targets(tokens.size());
  data.batch(static_cast<std::int64_t>(data_cursor), 1, tokens, targets);
  return {{.path = "data", .kind = Path::dynamic, .data_cursor = data_cursor}, tokens.front() % 2};
}

}  // namespace headroom::bench
