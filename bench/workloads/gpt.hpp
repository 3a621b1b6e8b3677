#pragma once

#include "workloads/gpt_block.hpp"

#include <vector>

namespace headroom::bench {

/// GPT-2 (Radford et al. 2019) with Hugging Face's names and shapes (io/hf_gpt2.hpp): pre-norm blocks, "gelu_new",
/// causal attention, and an output head tied to the token embedding. Unit `embedding` (wte, wpe, ln_f) is visited first
/// and, as the head, last.
///
/// With Recompute::unit a block unit keeps its input only; backward runs its forward again, but for its last
/// projection, whose output nothing needs. The embedding keeps what it has: its head is left just before it is
/// re-entered.
class Gpt final : public Workload {
 public:
  /// Throws: InvalidInput where a size is not positive or the heads do not divide the width.
  explicit Gpt(const ModelShape& shape, const Wrap& wrap = {}, Recompute recompute = Recompute::none);

  [[nodiscard]] std::vector<UnitSpec> units() const override;
  [[nodiscard]] std::vector<PathSpec> paths() const override;
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override;
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override;
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override;

 private:
  class Pass;

  /// The halves of blocks in one unit: half 2 i is the attention of block i, half 2 i + 1 its MLP.
  struct Halves {
    int begin = 0, end = 0;
  };
  [[nodiscard]] Halves halves_of(int block_unit) const noexcept;
  [[nodiscard]] int block_units() const noexcept;

  ModelShape shape_;
  Wrap wrap_;
  Recompute recompute_;
};

}  // namespace headroom::bench
