#pragma once

#include "workloads/workload.hpp"

namespace headroom::bench {

/// Each half of a block (attention, MLP) has six parameters, in this order: norm, projection in, projection out.
inline constexpr int kParametersPerHalf = 6;

struct HalfParameters {
  TensorView norm_weight, norm_bias, in_weight, in_bias, out_weight, out_bias;
};

/// What both halves of every block need to know of a micro-batch.
struct BlockShape {
  std::int64_t batch = 1, sequence = 1, width = 1, heads = 1;
  [[nodiscard]] std::int64_t rows() const noexcept { return batch * sequence; }
};

/// A half at work: its unit, its parameters, and where its activations come from.
struct HalfContext {
  const TensorSource* tensors = nullptr;
  BlockShape shape;
  int unit = -1;
  HalfParameters weights;
};

/// What a half keeps for backward. The layer norm's output and the GELU's are computed again: a pass over memory each,
/// for 6 of 16 activations of a block.
struct AttentionState {
  Tensor x, qkv, out, lse;  ///< [n,C], [n,3C], [n,C], [B,H,T].
};
struct MlpState {
  Tensor x, hidden;  ///< [n,C], [n,4C] (as wide as its weights) before the GELU.
};

/// Takes x [n,C] and fills `state` from it: what backward needs, and what output reads. Throws: OutOfMemory.
void attention_inner(const HalfContext& half, Tensor x, AttentionState& state);
/// x + attention(norm(x)).
[[nodiscard]] Tensor attention_output(const HalfContext& half, const AttentionState& state);
/// dx [n,C]: the output's gradient on entry, the input's on return. Frees the state piece by piece.
void attention_backward(const HalfContext& half, const HalfParameters& gradients, AttentionState& state, TensorView dx);
/// The same for x + mlp(norm(x)), whose hidden width is that of its weights.
void mlp_inner(const HalfContext& half, Tensor x, MlpState& state);
[[nodiscard]] Tensor mlp_output(const HalfContext& half, const MlpState& state);
void mlp_backward(const HalfContext& half, const HalfParameters& gradients, MlpState& state, TensorView dx);

}  // namespace headroom::bench
