#include "kernels/check.hpp"
#include "kernels/host.hpp"

#include <utility>

namespace headroom::kernels {

namespace {

Cost gemm_cost(const host::GemmShape& shape) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  return {2 * m * n * k, 4 * (m * k + k * n + 2 * m * n)};
}

host::Linear linear_shape(const char* kernel, const TensorView& x, const TensorView& w) {
  const host::Linear shape{x.shape[0], x.shape[1], w.shape[1]};
  check_extent(kernel, "rows of x", shape.rows);
  check_extent(kernel, "columns of x", shape.in);
  check_extent(kernel, "columns of w", shape.out);
  check_tensor(kernel, "x", x, DType::f32, {shape.rows, shape.in});
  check_tensor(kernel, "w", w, DType::f32, {shape.in, shape.out});
  return shape;
}

/// residual null: none.
void enqueue_linear(const char* name, const host::Linear& shape, const TensorView& x, const TensorView& w,
                    const TensorView& bias, const float* residual, const TensorView& y, const Launch& launch) {
  check_tensor(name, "bias", bias, DType::f32, {shape.out});
  check_tensor(name, "y", y, DType::f32, {shape.rows, shape.out});
  enqueue(launch, name, gemm_cost({shape.rows, shape.out, shape.in}),
          [shape, x = x.as<float>(), w = w.as<float>(), bias = bias.as<float>(), residual, y = y.as<float>()] {
            host::linear_forward(shape, x, w, bias, residual, y);
          });
}

}  // namespace

void gemm(TensorView a, Transpose ta, TensorView b, Transpose tb, TensorView c, float alpha, float beta,
          Launch launch) {
  const host::GemmShape shape{c.shape[0], c.shape[1], ta == Transpose::no ? a.shape[1] : a.shape[0]};
  check_extent("gemm", "rows of c", shape.m);
  check_extent("gemm", "columns of c", shape.n);
  check_extent("gemm", "inner extent", shape.k);
  const auto check_operand = [](const char* name, const TensorView& tensor, Transpose transpose, std::int64_t rows,
                                std::int64_t columns) {
    if (transpose == Transpose::yes) std::swap(rows, columns);
    check_tensor("gemm", name, tensor, DType::f32, {rows, columns});
  };
  check_operand("a", a, ta, shape.m, shape.k);
  check_operand("b", b, tb, shape.k, shape.n);
  check_tensor("gemm", "c", c, DType::f32, {shape.m, shape.n});
  const host::Operand left{a.as<float>(), a.shape[1], ta == Transpose::yes};
  const host::Operand right{b.as<float>(), b.shape[1], tb == Transpose::yes};
  enqueue(launch, "gemm", gemm_cost(shape),
          [shape, left, right, alpha, beta, out = host::Output{c.as<float>(), shape.n}] {
            host::gemm(shape, left, right, alpha, beta, out);
          });
}

void linear_forward(TensorView x, TensorView w, TensorView bias, TensorView y, Launch launch) {
  const auto shape = linear_shape("linear_forward", x, w);
  enqueue_linear("linear_forward", shape, x, w, bias, nullptr, y, launch);
}

void linear_residual_forward(TensorView x, TensorView w, TensorView bias, TensorView residual, TensorView y,
                             Launch launch) {
  const auto shape = linear_shape("linear_residual_forward", x, w);
  check_tensor("linear_residual_forward", "residual", residual, DType::f32, {shape.rows, shape.out});
  enqueue_linear("linear_residual_forward", shape, x, w, bias, residual.as<float>(), y, launch);
}

void linear_backward(TensorView dy, TensorView x, TensorView w, TensorView dx, TensorView dw, TensorView dbias,
                     Launch launch) {
  const auto shape = linear_shape("linear_backward", x, w);
  check_tensor("linear_backward", "dy", dy, DType::f32, {shape.rows, shape.out});
  check_tensor("linear_backward", "dx", dx, DType::f32, {shape.rows, shape.in});
  check_tensor("linear_backward", "dw", dw, DType::f32, {shape.in, shape.out});
  check_tensor("linear_backward", "dbias", dbias, DType::f32, {shape.out});
  const Cost one = gemm_cost({shape.rows, shape.out, shape.in});
  const host::LinearGradients gradients{dx.as<float>(), dw.as<float>(), dbias.as<float>()};
  enqueue(launch, "linear_backward", {2 * one.flops, 2 * one.bytes},
          [shape, dy = dy.as<float>(), x = x.as<float>(), w = w.as<float>(), gradients] {
            host::linear_backward(shape, dy, x, w, gradients);
          });
}

}  // namespace headroom::kernels
