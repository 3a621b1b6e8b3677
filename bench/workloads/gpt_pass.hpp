#pragma once

#include "workloads/gpt.hpp"
#include "workloads/wide_parameters.hpp"

#include <vector>

namespace headroom::bench {

/// One micro-batch on its way through the model.
class Gpt::Pass {
 public:
  Pass(const Gpt& model, StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors);

  void embed();
  void forward(int block_unit);
  void head();
  void head_backward();
  void backward(int block_unit);
  void embed_backward();

 private:
  [[nodiscard]] HalfContext context(const UnitLease& unit, const WideParameters& weights) const;
  [[nodiscard]] WideParameters weights_of(const UnitLease& unit, int index) const;
  [[nodiscard]] Tensor loss_workspace() const;
  [[nodiscard]] kernels::CrossEntropy cross_entropy(TensorView embedding, const Tensor& workspace) const;
  void half_inner(const HalfContext& self, Tensor input, int half);
  [[nodiscard]] Tensor half_output(const HalfContext& self, int half) const;
  void keep_input_only(int block_unit, int half);
  void recompute(const UnitLease& unit, int block_unit);

  const Gpt& model_;
  StepTransaction& step_;
  const MicroBatch& batch_;
  const TensorSource& tensors_;
  BlockShape shape_;
  std::vector<AttentionState> attention_;  ///< Of each block.
  std::vector<MlpState> mlp_;
  std::vector<Tensor> inputs_;               ///< Of each block unit, where nothing else of it is kept.
  Tensor x_, hidden_, mean_, rstd_, lse_{};  ///< x: what flows between units; the others are the head's.
};

}  // namespace headroom::bench
