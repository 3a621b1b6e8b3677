#pragma once

#include "workloads/gpt_block.hpp"

#include <string>
#include <vector>

namespace headroom::bench {

/// A unit of a model that is a chain of stages, each [n,C] to [n,C] but for its ends.
struct Stage {
  enum class Kind : std::uint8_t {
    embedding,   ///< tokens -> wte[token] + wpe[position]; the positions are frozen.
    gain,        ///< x * weight + bias, one number each.
    projection,  ///< x + x * weight + bias, all of it frozen.
    mlp,         ///< x + mlp(norm(x)), `hidden` wide.
    head,        ///< norm(x), an output matrix of its own, and the loss.
  };
  Kind kind = Kind::mlp;
  std::string name;
  std::int64_t hidden = 0;
};

/// With N(0, 0.02) matrices; the projection's deviation is 0.5 / sqrt(width), which about keeps what it is given.
[[nodiscard]] std::vector<ParameterSpec> parameters_of(const Stage& stage, const ModelShape& model);

/// What it computes, for the attribution of the peak. Static lifetime.
[[nodiscard]] const char* operation_of(const Stage& stage) noexcept;

/// A stage at work on one micro-batch.
struct StageContext {
  const TensorSource* tensors = nullptr;
  const MicroBatch* batch = nullptr;
  std::int64_t width = 1;
  Recompute recompute = Recompute::none;

  [[nodiscard]] std::int64_t rows() const noexcept { return batch->shape.tokens(); }
  [[nodiscard]] BlockShape block() const noexcept { return {batch->shape.batch, batch->shape.sequence, width, 1}; }
};

/// What a stage keeps for backward; with Recompute::unit an MLP keeps its input only.
struct StageState {
  MlpState mlp;
  Tensor x, hidden, mean, rstd, lse;
};

/// Takes x and gives the stage's output; the head has none and adds to `loss`. Throws: OutOfMemory.
[[nodiscard]] Tensor stage_forward(const Stage& stage, const StageContext& context, const UnitLease& unit, Tensor x,
                                   TensorView loss, StageState& state);
/// Takes the gradient of the stage's output (of the head: nothing) and gives that of its input (of the embedding:
/// none).
[[nodiscard]] Tensor stage_backward(const Stage& stage, const StageContext& context, const UnitLease& unit, Tensor dy,
                                    StageState& state);

/// 6 for each parameter of a matrix product, 4 where it is frozen and has no gradient.
[[nodiscard]] double model_flops_per_token(const Stage& stage, const ModelShape& model);
/// Appends the stage's matrix products to those of a forward, or of a backward.
void add_forward_gemms(const Stage& stage, const ModelShape& model, std::int64_t rows, std::vector<GemmCall>& calls);
void add_backward_gemms(const Stage& stage, const ModelShape& model, Recompute recompute, std::int64_t rows,
                        std::vector<GemmCall>& calls);

}  // namespace headroom::bench
