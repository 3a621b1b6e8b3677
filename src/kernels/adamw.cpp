#include "kernels/host.hpp"

#include <algorithm>
#include <cmath>

namespace headroom::kernels::host {

namespace {

/// As torch.nn.utils.clip_grad_norm_.
double clip_coefficient(double sum_squares, double clip) {
  return clip > 0 ? std::min(1.0, clip / (std::sqrt(sum_squares) + 1e-6)) : 1.0;
}

}  // namespace

void adamw(const AdamWRange& range, const StepScalars& scalars, const AdamWHyperparameters& options) {
  if (!std::isfinite(scalars.sum_squares)) return;
  const double correction1 = 1 - std::pow(options.beta1, scalars.applied_steps);
  const double correction2 = 1 - std::pow(options.beta2, scalars.applied_steps);
  const auto clip = static_cast<float>(clip_coefficient(scalars.sum_squares, options.clip));
  const auto shrink = static_cast<float>(1 - options.learning_rate * options.weight_decay);
  const auto step_size = static_cast<float>(options.learning_rate / correction1);
  const auto root = static_cast<float>(1 / std::sqrt(correction2));
  const auto eps = static_cast<float>(options.eps);
  const auto mix1 = static_cast<float>(1 - options.beta1), mix2 = static_cast<float>(1 - options.beta2);
  const auto beta2 = static_cast<float>(options.beta2);
  float* parameter = range.parameter;
  const float* gradient = range.gradient;
  float *exp_avg = range.exp_avg, *exp_avg_sq = range.exp_avg_sq;
#pragma omp simd
  for (std::int64_t i = 0; i < range.count; ++i) {
    const float g = gradient[i] * clip;
    const float m = exp_avg[i] + mix1 * (g - exp_avg[i]);
    const float v = beta2 * exp_avg_sq[i] + mix2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    parameter[i] = parameter[i] * shrink - step_size * m / (std::sqrt(v) * root + eps);
  }
}

}  // namespace headroom::kernels::host
