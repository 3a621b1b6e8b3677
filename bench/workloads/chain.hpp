#pragma once

#include "workloads/stage.hpp"

#include <vector>

namespace headroom::bench {

/// A model over tokens that runs its stages one after the other; each is a unit, visited at most once a pass.
class Chain : public Workload {
 public:
  Chain(const ModelShape& model, Recompute recompute, std::vector<Stage> stages);

  [[nodiscard]] std::vector<UnitSpec> units() const override;
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override;
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override;
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override;

 protected:
  [[nodiscard]] virtual int branches() const { return 1; }
  /// The stages that one branch visits, in forward order.
  [[nodiscard]] virtual std::vector<int> visits(int branch) const;
  [[nodiscard]] int stage_count() const noexcept { return static_cast<int>(stages_.size()); }

 private:
  ModelShape model_;
  Recompute recompute_;
  std::vector<Stage> stages_;
};

/// Units of very unequal size: `wide` holds most of the bytes, each `gain.i` two numbers (fewer than most sets have
/// ranks), `narrow.i` a few rows; `projection` is frozen, and of `embedding` the positions.
class Irregular final : public Chain {
 public:
  Irregular(const ModelShape& model, Recompute recompute);
};

/// A shared trunk, two branches of unequal size, `a` (even steps) and `b` (odd steps), and a shared head. How the
/// runtime learns of them: both paths are declared; or only the even one is; or nothing is known ahead, and the parity
/// of the first token of a step's first sample decides.
class Branching final : public Chain {
 public:
  Branching(const ModelShape& model, std::int64_t sequence, Branches branches, Recompute recompute);

  [[nodiscard]] std::vector<PathSpec> paths() const override;
  [[nodiscard]] StepPlan plan_step(std::int64_t step, std::uint64_t data_cursor, const TokenData& data) const override;

 protected:
  [[nodiscard]] int branches() const override { return 2; }
  [[nodiscard]] std::vector<int> visits(int branch) const override;

 private:
  std::int64_t sequence_;
  Branches branches_;
};

}  // namespace headroom::bench
