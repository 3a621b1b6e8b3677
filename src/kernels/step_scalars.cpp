#include "kernels/host.hpp"

#include <cmath>

namespace headroom::kernels::host {

double sum_squares(const float* data, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(data[i]) * static_cast<double>(data[i]);
  return sum;
}

void advance_step(StepScalars& scalars) {
  double& count = std::isfinite(scalars.sum_squares) ? scalars.applied_steps : scalars.skipped_steps;
  count += 1;
}

}  // namespace headroom::kernels::host
