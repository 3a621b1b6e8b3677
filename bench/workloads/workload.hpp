#pragma once

#include <headroom/kernels.hpp>
#include <headroom/parameters.hpp>
#include "workloads/tensor_source.hpp"

#include <cstdint>
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

/// A model as the runtime sees it: units of parameters, one path through them, and the arithmetic of a micro-batch.
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  /// Adds the units in registration order and declares the path. Throws: OutOfMemory, InvalidInput.
  virtual void add_units(ParameterManager& parameters) = 0;
  /// One micro-batch's forward and backward: enqueues every visit of the path, adds to the step's loss, blocks only
  /// where the schedule does. Throws: OutOfMemory; StepAborted.
  virtual void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) = 0;

  /// Floating-point operations of one token's forward and backward, as CONTRACT section 2 counts them.
  [[nodiscard]] virtual double model_flops_per_token(std::int64_t sequence) const = 0;
  /// The matrix products against parameters of one micro-batch, in the order in which the step has them.
  [[nodiscard]] virtual std::vector<GemmCall> gemm_calls(const BatchShape& shape) const = 0;
};

}  // namespace headroom::bench
