#include "kernels/check.hpp"
#include "kernels/host.hpp"

namespace headroom::kernels {

namespace {

/// `qkv` and `out` may be their gradients: the shapes are the same.
host::Attention attention_shape(const char* kernel, const TensorView& qkv, const TensorView& out, const TensorView& lse,
                                const TensorView& workspace) {
  host::Attention shape{lse.shape[0], lse.shape[1], lse.shape[2], 1};
  check_extent(kernel, "batch", shape.batch);
  check_extent(kernel, "heads", shape.heads);
  check_extent(kernel, "sequence", shape.sequence);
  check_extent(kernel, "width", out.shape[1]);
  check_that(out.shape[1] % shape.heads == 0, kernel, "the heads of lse must divide the width of out");
  shape.head_dim = out.shape[1] / shape.heads;
  const std::int64_t rows = shape.batch * shape.sequence;
  check_extent(kernel, "columns of qkv", 3 * shape.width());
  check_tensor(kernel, "lse", lse, DType::f32, {shape.batch, shape.heads, shape.sequence});
  check_tensor(kernel, "out", out, DType::f32, {rows, shape.width()});
  check_tensor(kernel, "qkv", qkv, DType::f32, {rows, 3 * shape.width()});
  check_workspace(kernel, workspace, attention_workspace_bytes(shape.sequence, shape.head_dim));
  return shape;
}

/// `products` multiplications of the lower triangle of T x T by head_dim; `passes` over a tensor of n x C.
Cost attention_cost(const host::Attention& shape, double products, double passes) {
  const auto sequence = static_cast<double>(shape.sequence);
  const double elements = static_cast<double>(shape.batch) * sequence * static_cast<double>(shape.width());
  return {products * sequence * elements, 4 * passes * elements};
}

}  // namespace

std::size_t attention_workspace_bytes(std::int64_t sequence, std::int64_t head_dim) {
  check_extent("attention", "sequence", sequence);
  check_extent("attention", "head_dim", head_dim);
  return static_cast<std::size_t>(host::Attention{1, 1, sequence, head_dim}.workspace_numel()) * sizeof(float);
}

void attention_forward(TensorView qkv, TensorView out, TensorView lse, TensorView workspace, Launch launch) {
  const auto shape = attention_shape("attention_forward", qkv, out, lse, workspace);
  enqueue(launch, "attention_forward", attention_cost(shape, 2, 4),
          [shape, qkv = qkv.as<float>(), out = out.as<float>(), lse = lse.as<float>(),
           workspace = workspace.as<float>()] { host::attention_forward(shape, qkv, out, lse, workspace); });
}

void attention_backward(TensorView dout, TensorView qkv, TensorView out, TensorView lse, TensorView dqkv,
                        TensorView workspace, Launch launch) {
  const auto shape = attention_shape("attention_backward", qkv, out, lse, workspace);
  check_tensor("attention_backward", "dout", dout, DType::f32, {out.shape[0], shape.width()});
  check_tensor("attention_backward", "dqkv", dqkv, DType::f32, {out.shape[0], 3 * shape.width()});
  const host::AttentionInputs inputs{dout.as<float>(), qkv.as<float>(), out.as<float>(), lse.as<float>()};
  enqueue(launch, "attention_backward", attention_cost(shape, 5, 8),
          [shape, inputs, dqkv = dqkv.as<float>(), workspace = workspace.as<float>()] {
            host::attention_backward(shape, inputs, dqkv, workspace);
          });
}

}  // namespace headroom::kernels
