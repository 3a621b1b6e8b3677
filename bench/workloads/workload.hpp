#pragma once

#include <headroom/kernels.hpp>
#include <headroom/parameters.hpp>

#include "data/token_data.hpp"
#include "options/config.hpp"
#include "workloads/tensor_source.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom::bench {

/// The size of one micro-batch of one rank.
struct BatchShape {
  std::int64_t batch = 1, sequence = 1;
  [[nodiscard]] std::int64_t tokens() const noexcept { return batch * sequence; }
};

struct MicroBatch {
  BatchShape shape;
  TensorView tokens, targets;  ///< i32 [batch * sequence].
  double loss_scale = 1;       ///< 1 / (tokens of the step over all ranks and micro-batches).
  int branch = 0;              ///< As the step's plan has it.
};

/// A unit as a workload describes it.
struct UnitSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
};

/// A path that is declared before training: indices into the units, in order of forward visits; backward is its
/// reverse.
struct PathSpec {
  std::string name;
  std::vector<int> forward;
};

/// What a step does, decided on the host before it begins, alike on all ranks.
struct StepPlan {
  StepOptions options;
  int branch = 0;  ///< Which way through the model, where it has several.
};

/// Matrix products of one shape, c[m,n] = op(a) op(b), and how many a micro-batch has.
struct GemmCall {
  std::int64_t m = 0, n = 0, k = 0;
  kernels::Transpose ta = kernels::Transpose::no, tb = kernels::Transpose::no;
  std::int64_t count = 1;
  [[nodiscard]] double flops() const noexcept {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(count);
  }
};

/// A model as the runtime sees it: units of parameters, paths through them, and the arithmetic of a micro-batch.
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  /// In registration order. Pure.
  [[nodiscard]] virtual std::vector<UnitSpec> units() const = 0;
  /// Pure; none: one path "default" of all units in order.
  [[nodiscard]] virtual std::vector<PathSpec> paths() const { return {}; }
  /// `data_cursor`: the step's first sample in `data`, which all ranks hold. Pure.
  [[nodiscard]] virtual StepPlan plan_step(std::int64_t step, std::uint64_t data_cursor, const TokenData& data) const;
  /// One micro-batch's forward and backward: enqueues every visit of the path, adds to the step's loss, blocks only
  /// where the schedule does. Throws: OutOfMemory; StepAborted.
  virtual void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) = 0;

  /// Floating-point operations of one token's forward and backward, as CONTRACT section 2 counts them; the mean of the
  /// branches.
  [[nodiscard]] virtual double model_flops_per_token(std::int64_t sequence) const = 0;
  /// The matrix products against parameters of one micro-batch, in the order in which the step has them; of each branch
  /// in turn.
  [[nodiscard]] virtual std::vector<GemmCall> gemm_calls(const BatchShape& shape) const = 0;
};

/// The workload that the options name. Throws: InvalidInput.
[[nodiscard]] std::unique_ptr<Workload> make_workload(const Config& config);

/// Adds the workload's units and declares its paths. Throws: OutOfMemory; InvalidInput.
void add_units(const Workload& workload, ParameterManager& parameters);

}  // namespace headroom::bench
