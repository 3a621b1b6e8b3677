#include "kernels/check.hpp"
#include "kernels/host.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::kernels::host {

namespace {

/// logits[rows, count] of the words [first, first + count).
void chunk_logits(const LinearCrossEntropy& head, std::int64_t first, std::int64_t count, float* logits) {
  gemm({head.rows, count, head.width}, {head.hidden, head.width}, {head.wte + first * head.width, head.width, true},
       1.0F, 0.0F, {logits, count});
}

/// Folds a row of logits into the running maximum and sum of exp(logit - maximum).
void fold_row(const float* logits, std::int64_t count, float& maximum, float& sum) {
  float highest = maximum, added = 0;
#pragma omp simd reduction(max : highest)
  for (std::int64_t i = 0; i < count; ++i) highest = highest < logits[i] ? logits[i] : highest;
#pragma omp simd reduction(+ : added)
  for (std::int64_t i = 0; i < count; ++i) added += exp(logits[i] - highest);
  sum = sum * std::exp(maximum - highest) + added;
  maximum = highest;
}

/// logits -> d(loss) / d(logits), without the target's -scale.
void row_gradient(float* logits, std::int64_t count, float lse, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) logits[i] = exp(logits[i] - lse) * scale;
}

}  // namespace

/// A chunk of logits of about 4 MiB stays in the cache that cores share; narrower than 512 words GEMM loses more.
std::int64_t cross_entropy_chunk(std::int64_t rows, std::int64_t vocabulary) noexcept {
  constexpr std::int64_t kLogits = std::int64_t{1} << 20, kNarrowest = 512, kMultiple = 64;
  return std::min(vocabulary, std::max(kNarrowest, kLogits / std::max<std::int64_t>(rows, 1) / kMultiple * kMultiple));
}

/// A chunk of logits, and for each row its running sum and its target's logit.
std::int64_t cross_entropy_workspace_numel(std::int64_t rows, std::int64_t chunk) noexcept {
  return rows * (chunk + 2);
}

void cross_entropy_forward(const LinearCrossEntropy& head, double* loss) {
  check_tokens("cross_entropy_forward", head.targets, head.rows, head.vocabulary);
  float* logits = head.workspace;
  float* sum = logits + head.rows * head.chunk;
  float* target_logit = sum + head.rows;
  float* maximum = head.lse;
  std::fill_n(maximum, head.rows, -std::numeric_limits<float>::infinity());
  std::fill_n(sum, head.rows, 0.0F);
  for (std::int64_t first = 0; first < head.vocabulary; first += head.chunk) {
    const std::int64_t count = std::min(head.chunk, head.vocabulary - first);
    chunk_logits(head, first, count, logits);
    for (std::int64_t row = 0; row < head.rows; ++row) {
      const std::int64_t target = head.targets[row] - first;
      if (target >= 0 && target < count) target_logit[row] = logits[row * count + target];
      fold_row(logits + row * count, count, maximum[row], sum[row]);
    }
  }
  double total = 0;
  for (std::int64_t row = 0; row < head.rows; ++row) {
    const double lse = static_cast<double>(maximum[row]) + std::log(static_cast<double>(sum[row]));
    total += lse - static_cast<double>(target_logit[row]);
    head.lse[row] = static_cast<float>(lse);
  }
  *loss += head.scale * total;
}

void cross_entropy_backward(const LinearCrossEntropy& head, float* dhidden, float* dwte) {
  check_tokens("cross_entropy_backward", head.targets, head.rows, head.vocabulary);
  const auto scale = static_cast<float>(head.scale);
  float* logits = head.workspace;
  for (std::int64_t first = 0; first < head.vocabulary; first += head.chunk) {
    const std::int64_t count = std::min(head.chunk, head.vocabulary - first);
    chunk_logits(head, first, count, logits);
    for (std::int64_t row = 0; row < head.rows; ++row) {
      row_gradient(logits + row * count, count, head.lse[row], scale);
      const std::int64_t target = head.targets[row] - first;
      if (target >= 0 && target < count) logits[row * count + target] -= scale;
    }
    gemm({head.rows, head.width, count}, {logits, count}, {head.wte + first * head.width, head.width}, 1.0F,
         first > 0 ? 1.0F : 0.0F, {dhidden, head.width});
    gemm({count, head.width, head.rows}, {logits, count, true}, {head.hidden, head.width}, 1.0F, 1.0F,
         {dwte + first * head.width, head.width});
  }
}

}  // namespace headroom::kernels::host
