#pragma once

#include "workloads/gpt_block.hpp"

#include <string>
#include <vector>

namespace headroom::bench {

struct GptShape {
  std::int64_t layers = 8, width = 512, heads = 8, vocabulary = 256, positions = 256;
  int halves_per_unit = 2;  ///< A block has two: attention and MLP. 1 wraps them apart, 2 K wraps K blocks together.
};

/// GPT-2 (Radford et al. 2019) with Hugging Face's names and shapes: pre-norm blocks, "gelu_new", causal attention, and
/// an output head tied to the token embedding. Unit `embedding` (wte, wpe, ln_f) is visited first and, as the head,
/// last; then h.0, h.1, ...
class Gpt final : public Workload {
 public:
  /// Throws: InvalidInput where a size is not positive or the heads do not divide the width.
  explicit Gpt(const GptShape& shape);

  void add_units(ParameterManager& parameters) override;
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override;
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override;
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override;

 private:
  struct Pass;

  [[nodiscard]] std::string unit_name(std::int64_t first_half, std::int64_t end_half) const;

  GptShape shape_;
  int embedding_ = -1;
  std::vector<int> blocks_;  ///< Units after the embedding, in order.
};

}  // namespace headroom::bench
