#include "kernels/host.hpp"
#include "kernels/vector_math.hpp"

namespace headroom::kernels::host {

// 0.5 (1 + tanh(u)) is the logistic function of 2u: no cancellation for negative x, one exponential, one division.
namespace {

constexpr float kTwiceRoot = 1.5957691216F;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

}  // namespace

void gelu_forward(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float in = x[i];
    const float twice = kTwiceRoot * (in + kCubic * in * in * in);
    y[i] = in / (1.0F + exp(-twice));
  }
}

void gelu_backward(const float* dy, const float* x, float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float in = x[i];
    const float square = in * in;
    const float inverse = exp(-kTwiceRoot * (in + kCubic * in * square));
    const float logistic = 1.0F / (1.0F + inverse);
    const float slope = kTwiceRoot * (1.0F + 3.0F * kCubic * square);
    dx[i] = dy[i] * (logistic + in * slope * (inverse * logistic * logistic));
  }
}

}  // namespace headroom::kernels::host
