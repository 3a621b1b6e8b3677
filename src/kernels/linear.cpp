#include "kernels/host.hpp"

namespace headroom::kernels::host {

void linear_forward(const Linear& shape, const float* x, const float* w, const float* bias, const float* residual,
                    float* y) {
  const std::int64_t rows = shape.rows, in = shape.in, out = shape.out;
  for (std::int64_t row = 0; row < rows; ++row) {  // the product is added to what is written here: no pass after it
    float* to = y + row * out;
    if (residual == nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < out; ++i) to[i] = bias[i];
    } else {
      const float* from = residual + row * out;
#pragma omp simd
      for (std::int64_t i = 0; i < out; ++i) to[i] = from[i] + bias[i];
    }
  }
  gemm({rows, out, in}, {x, in}, {w, out}, 1.0F, 1.0F, {y, out});
}

void linear_backward(const Linear& shape, const float* dy, const float* x, const float* w,
                     const LinearGradients& gradients) {
  const std::int64_t rows = shape.rows, in = shape.in, out = shape.out;
  gemm({rows, in, out}, {dy, out}, {w, out, true}, 1.0F, 0.0F, {gradients.dx, in});
  gemm({in, out, rows}, {x, in, true}, {dy, out}, 1.0F, 1.0F, {gradients.dw, out});
  float* dbias = gradients.dbias;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = dy + row * out;
#pragma omp simd
    for (std::int64_t i = 0; i < out; ++i) dbias[i] += from[i];
  }
}

}  // namespace headroom::kernels::host
