#include "workloads/gpt_block.hpp"

namespace headroom::bench {
namespace {

struct Normed {
  Tensor y, mean, rstd;
};

/// A layer norm; backward runs it again rather than keep its output.
Normed normed(const HalfContext& half, TensorView x) {
  const std::int64_t rows = half.shape.rows();
  Normed norm{half.tensors->activation("norm", half.unit, rows, half.shape.width),
              half.tensors->activation("norm.mean", half.unit, rows),
              half.tensors->activation("norm.rstd", half.unit, rows)};
  kernels::layer_norm_forward(x, half.weights.norm_weight, half.weights.norm_bias, norm.y.view, norm.mean.view,
                              norm.rstd.view, {half.tensors->compute(), half.unit});
  return norm;
}

/// From the gradient of the first projection's output to the half's input gradient, added to dx.
void projection_and_norm_backward(const HalfContext& half, const HalfParameters& gradients, TensorView dprojected,
                                  const Normed& norm, TensorView x, TensorView dx) {
  const kernels::Launch launch{half.tensors->compute(), half.unit};
  const Tensor dnorm = half.tensors->activation("dnorm", half.unit, half.shape.rows(), half.shape.width);
  kernels::linear_backward(dprojected, norm.y.view, half.weights.in_weight, dnorm.view, gradients.in_weight,
                           gradients.in_bias, launch);
  kernels::layer_norm_backward({x, half.weights.norm_weight, norm.mean.view, norm.rstd.view}, dnorm.view, dx,
                               kernels::Write::accumulate, gradients.norm_weight, gradients.norm_bias, launch);
}

Tensor attention_workspace(const HalfContext& half) {
  return half.tensors->workspace(
      "attention", half.unit,
      kernels::attention_workspace_bytes(half.shape.sequence, half.shape.width / half.shape.heads));
}

}  // namespace

void attention_inner(const HalfContext& half, Tensor x, AttentionState& state) {
  const TensorSource& tensors = *half.tensors;
  const BlockShape& shape = half.shape;
  const kernels::Launch launch{tensors.compute(), half.unit};
  state.qkv = tensors.activation("qkv", half.unit, shape.rows(), 3 * shape.width);
  {
    const Normed norm = normed(half, x.view);
    kernels::linear_forward(norm.y.view, half.weights.in_weight, half.weights.in_bias, state.qkv.view, launch);
  }
  state.out = tensors.activation("attention.out", half.unit, shape.rows(), shape.width);
  state.lse =
      tensors.make("attention.lse", Category::activation, half.unit, {shape.batch, shape.heads, shape.sequence, 1});
  const Tensor workspace = attention_workspace(half);
  kernels::attention_forward(state.qkv.view, state.out.view, state.lse.view, workspace.view, launch);
  state.x = std::move(x);
}

Tensor attention_output(const HalfContext& half, const AttentionState& state) {
  Tensor y = half.tensors->activation("residual", half.unit, half.shape.rows(), half.shape.width);
  kernels::linear_residual_forward(state.out.view, half.weights.out_weight, half.weights.out_bias, state.x.view, y.view,
                                   {half.tensors->compute(), half.unit});
  return y;
}

void attention_backward(const HalfContext& half, const HalfParameters& gradients, AttentionState& state,
                        TensorView dx) {
  const TensorSource& tensors = *half.tensors;
  const BlockShape& shape = half.shape;
  const kernels::Launch launch{tensors.compute(), half.unit};
  const Tensor dqkv = tensors.activation("dqkv", half.unit, shape.rows(), 3 * shape.width);
  {
    const Tensor dout = tensors.activation("dattention", half.unit, shape.rows(), shape.width);
    kernels::linear_backward(dx, state.out.view, half.weights.out_weight, dout.view, gradients.out_weight,
                             gradients.out_bias, launch);
    const Tensor workspace = attention_workspace(half);
    kernels::attention_backward(dout.view, state.qkv.view, state.out.view, state.lse.view, dqkv.view, workspace.view,
                                launch);
  }
  state.qkv = {};
  state.out = {};
  state.lse = {};
  projection_and_norm_backward(half, gradients, dqkv.view, normed(half, state.x.view), state.x.view, dx);
  state.x = {};
}

void mlp_inner(const HalfContext& half, Tensor x, MlpState& state) {
  state.hidden = half.tensors->activation("mlp.hidden", half.unit, half.shape.rows(), half.weights.in_bias.numel());
  const Normed norm = normed(half, x.view);
  kernels::linear_forward(norm.y.view, half.weights.in_weight, half.weights.in_bias, state.hidden.view,
                          {half.tensors->compute(), half.unit});
  state.x = std::move(x);
}

Tensor mlp_output(const HalfContext& half, const MlpState& state) {
  const kernels::Launch launch{half.tensors->compute(), half.unit};
  const Tensor gelu = half.tensors->activation("mlp.gelu", half.unit, half.shape.rows(), half.weights.in_bias.numel());
  kernels::gelu_forward(state.hidden.view, gelu.view, launch);
  Tensor y = half.tensors->activation("residual", half.unit, half.shape.rows(), half.shape.width);
  kernels::linear_residual_forward(gelu.view, half.weights.out_weight, half.weights.out_bias, state.x.view, y.view,
                                   launch);
  return y;
}

void mlp_backward(const HalfContext& half, const HalfParameters& gradients, MlpState& state, TensorView dx) {
  const TensorSource& tensors = *half.tensors;
  const BlockShape& shape = half.shape;
  const kernels::Launch launch{tensors.compute(), half.unit};
  const Tensor dhidden = tensors.activation("dhidden", half.unit, shape.rows(), half.weights.in_bias.numel());
  {
    const Tensor gelu = tensors.activation("mlp.gelu", half.unit, shape.rows(), half.weights.in_bias.numel());
    kernels::gelu_forward(state.hidden.view, gelu.view, launch);
    kernels::linear_backward(dx, gelu.view, half.weights.out_weight, dhidden.view, gradients.out_weight,
                             gradients.out_bias, launch);
  }
  kernels::gelu_backward(dhidden.view, state.hidden.view, dhidden.view, launch);
  state.hidden = {};
  projection_and_norm_backward(half, gradients, dhidden.view, normed(half, state.x.view), state.x.view, dx);
  state.x = {};
}

}  // namespace headroom::bench
