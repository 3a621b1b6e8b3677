#include "kernels/check.hpp"
#include "kernels/host.hpp"

namespace headroom::kernels {

namespace {

Cost streamed(std::int64_t count, double flops_each, double tensors) {
  return {flops_each * static_cast<double>(count), 4 * tensors * static_cast<double>(count)};
}

/// `rows_by_width` is out or dout; wte and wpe the tables or their gradients.
host::Embedding embedding_shape(const char* kernel, const TensorView& tokens, const TensorView& wte,
                                const TensorView& wpe, const TensorView& rows_by_width, std::int64_t sequence) {
  const host::Embedding shape{tokens.shape[0], sequence, wte.shape[1], wte.shape[0]};
  check_extent(kernel, "the number of tokens", shape.rows);
  check_extent(kernel, "width", shape.width);
  check_extent(kernel, "vocabulary", shape.vocabulary);
  check_extent(kernel, "sequence", sequence);
  check_tensor(kernel, "tokens", tokens, DType::i32, {shape.rows});
  check_tensor(kernel, "wte", wte, DType::f32, {shape.vocabulary, shape.width});
  check_tensor(kernel, "wpe", wpe, DType::f32, {wpe.shape[0], shape.width});
  check_tensor(kernel, "out", rows_by_width, DType::f32, {shape.rows, shape.width});
  check_that(sequence <= wpe.shape[0], kernel, "the sequence is longer than wpe has positions");
  check_that(shape.rows % sequence == 0, kernel, "the number of tokens must be a multiple of the sequence");
  return shape;
}

host::LayerNorm layer_norm_shape(const char* kernel, const LayerNormInputs& inputs) {
  const host::LayerNorm norm{inputs.x.shape[0],         inputs.x.shape[1],       inputs.x.as<float>(),
                             inputs.weight.as<float>(), inputs.mean.as<float>(), inputs.rstd.as<float>()};
  check_extent(kernel, "rows of x", norm.rows);
  check_extent(kernel, "columns of x", norm.width);
  check_tensor(kernel, "x", inputs.x, DType::f32, {norm.rows, norm.width});
  check_tensor(kernel, "weight", inputs.weight, DType::f32, {norm.width});
  check_tensor(kernel, "mean", inputs.mean, DType::f32, {norm.rows});
  check_tensor(kernel, "rstd", inputs.rstd, DType::f32, {norm.rows});
  return norm;
}

}  // namespace

void embedding_forward(TensorView tokens, TensorView wte, TensorView wpe, TensorView out, std::int64_t sequence,
                       Launch launch) {
  const auto shape = embedding_shape("embedding_forward", tokens, wte, wpe, out, sequence);
  enqueue(launch, "embedding_forward", streamed(out.numel(), 1, 3),
          [shape, tokens = tokens.as<std::int32_t>(), wte = wte.as<float>(), wpe = wpe.as<float>(),
           out = out.as<float>()] { host::embedding_forward(shape, tokens, wte, wpe, out); });
}

void embedding_backward(TensorView tokens, TensorView dout, TensorView dwte, TensorView dwpe, std::int64_t sequence,
                        Launch launch) {
  const auto shape = embedding_shape("embedding_backward", tokens, dwte, dwpe, dout, sequence);
  enqueue(launch, "embedding_backward", streamed(dout.numel(), 2, 5),
          [shape, tokens = tokens.as<std::int32_t>(), dout = dout.as<float>(), dwte = dwte.as<float>(),
           dwpe = dwpe.as<float>()] { host::embedding_backward(shape, tokens, dout, dwte, dwpe); });
}

void layer_norm_forward(TensorView x, TensorView weight, TensorView bias, TensorView y, TensorView mean,
                        TensorView rstd, Launch launch) {
  const auto norm = layer_norm_shape("layer_norm_forward", {x, weight, mean, rstd});
  check_tensor("layer_norm_forward", "bias", bias, DType::f32, {norm.width});
  check_tensor("layer_norm_forward", "y", y, DType::f32, {norm.rows, norm.width});
  enqueue(launch, "layer_norm_forward", streamed(x.numel(), 8, 2),
          [norm, bias = bias.as<float>(), y = y.as<float>()] { host::layer_norm_forward(norm, bias, y); });
}

void layer_norm_backward(const LayerNormInputs& inputs, TensorView dy, TensorView dx, Write dx_write,
                         TensorView dweight, TensorView dbias, Launch launch) {
  const auto norm = layer_norm_shape("layer_norm_backward", inputs);
  check_tensor("layer_norm_backward", "dy", dy, DType::f32, {norm.rows, norm.width});
  check_tensor("layer_norm_backward", "dx", dx, DType::f32, {norm.rows, norm.width});
  check_tensor("layer_norm_backward", "dweight", dweight, DType::f32, {norm.width});
  check_tensor("layer_norm_backward", "dbias", dbias, DType::f32, {norm.width});
  check_that(dx_write == Write::overwrite || dx.data != dy.data, "layer_norm_backward",
             "dx must not be dy where it accumulates");
  enqueue(launch, "layer_norm_backward", streamed(dy.numel(), 16, dx_write == Write::accumulate ? 4 : 3),
          [norm, dy = dy.as<float>(), dx = dx.as<float>(), dx_write, dweight = dweight.as<float>(),
           dbias = dbias.as<float>()] { host::layer_norm_backward(norm, dy, dx, dx_write, dweight, dbias); });
}

void gelu_forward(TensorView x, TensorView y, Launch launch) {
  check_count("gelu_forward", "x", x, DType::f32, x.numel());
  check_count("gelu_forward", "y", y, DType::f32, x.numel());
  enqueue(launch, "gelu_forward", streamed(x.numel(), 20, 2),
          [x = x.as<float>(), y = y.as<float>(), count = x.numel()] { host::gelu_forward(x, y, count); });
}

void gelu_backward(TensorView dy, TensorView x, TensorView dx, Launch launch) {
  check_count("gelu_backward", "x", x, DType::f32, x.numel());
  check_count("gelu_backward", "dy", dy, DType::f32, x.numel());
  check_count("gelu_backward", "dx", dx, DType::f32, x.numel());
  enqueue(launch, "gelu_backward", streamed(x.numel(), 30, 3),
          [dy = dy.as<float>(), x = x.as<float>(), dx = dx.as<float>(), count = x.numel()] {
            host::gelu_backward(dy, x, dx, count);
          });
}

}  // namespace headroom::kernels
