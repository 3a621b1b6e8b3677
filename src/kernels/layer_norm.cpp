#include "kernels/host.hpp"

#include <cmath>

namespace headroom::kernels::host {

namespace {
constexpr float kEps = 1e-5F;
}

void layer_norm_forward(const LayerNorm& norm, const float* bias, float* y) {
  const std::int64_t width = norm.width;
  const float* weight = norm.weight;
  for (std::int64_t row = 0; row < norm.rows; ++row) {
    const float* x = norm.x + row * width;
    float* to = y + row * width;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += x[i];
    const float mean = sum / static_cast<float>(width);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float rstd = 1.0F / std::sqrt(squares / static_cast<float>(width) + kEps);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) to[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    norm.mean[row] = mean;
    norm.rstd[row] = rstd;
  }
}

// With xhat = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
void layer_norm_backward(const LayerNorm& norm, const float* dy, float* dx, Write dx_write, float* dweight,
                         float* dbias) {
  const std::int64_t width = norm.width;
  const float* weight = norm.weight;
  for (std::int64_t row = 0; row < norm.rows; ++row) {
    const float* x = norm.x + row * width;
    const float* from = dy + row * width;
    float* to = dx + row * width;
    const float mean = norm.mean[row], rstd = norm.rstd[row];
    float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (std::int64_t i = 0; i < width; ++i) {
      const float normalized = (x[i] - mean) * rstd;
      const float scaled = from[i] * weight[i];
      sum += scaled;
      product += scaled * normalized;
      dweight[i] += from[i] * normalized;
      dbias[i] += from[i];
    }
    sum /= static_cast<float>(width);
    product /= static_cast<float>(width);
    if (dx_write == Write::overwrite) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        to[i] = rstd * (from[i] * weight[i] - sum - (x[i] - mean) * rstd * product);
      }
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        to[i] += rstd * (from[i] * weight[i] - sum - (x[i] - mean) * rstd * product);
      }
    }
  }
}

}  // namespace headroom::kernels::host
