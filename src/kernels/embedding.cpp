#include "kernels/check.hpp"
#include "kernels/host.hpp"

namespace headroom::kernels::host {

void embedding_forward(const Embedding& shape, const std::int32_t* tokens, const float* wte, const float* wpe,
                       float* out) {
  check_tokens("embedding_forward", tokens, shape.rows, shape.vocabulary);
  const std::int64_t width = shape.width;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* token = wte + tokens[row] * width;
    const float* position = wpe + row % shape.sequence * width;
    float* to = out + row * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) to[i] = token[i] + position[i];
  }
}

void embedding_backward(const Embedding& shape, const std::int32_t* tokens, const float* dout, float* dwte,
                        float* dwpe) {
  check_tokens("embedding_backward", tokens, shape.rows, shape.vocabulary);
  const std::int64_t width = shape.width;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* from = dout + row * width;
    float* token = dwte + tokens[row] * width;
    float* position = dwpe + row % shape.sequence * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      token[i] += from[i];
      position[i] += from[i];
    }
  }
}

}  // namespace headroom::kernels::host
