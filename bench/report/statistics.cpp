#include "report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace headroom::bench {

double quantile(std::span<const double> values, double q) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

int signed_rank_critical_value(int n) {
  // probability[t] = P(T = t): each rank is in the sum with probability one half.
  std::vector<double> probability{1};
  for (int rank = 1; rank <= n; ++rank) {
    std::vector<double> next(probability.size() + static_cast<std::size_t>(rank), 0);
    for (std::size_t t = 0; t < probability.size(); ++t) {
      next[t] += probability[t] / 2;
      next[t + static_cast<std::size_t>(rank)] += probability[t] / 2;
    }
    probability = std::move(next);
  }
  constexpr double kTail = 0.025;
  int critical = -1;
  double below = 0;
  for (const double p : probability) {
    below += p;
    if (below > kTail) break;
    ++critical;
  }
  return critical;
}

Estimate estimate_ratio(std::span<const double> ratios) {
  std::vector<double> averages;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    for (std::size_t j = i; j < ratios.size(); ++j) {
      averages.push_back((std::log(ratios[i]) + std::log(ratios[j])) / 2);
    }
  }
  std::sort(averages.begin(), averages.end());
  Estimate estimate;
  estimate.median = std::exp(quantile(averages, 0.5));
  const int critical = signed_rank_critical_value(static_cast<int>(ratios.size()));
  if (critical >= 0) {
    const auto skipped = static_cast<std::size_t>(critical);  // averages outside the interval, on each side
    estimate.low = std::exp(averages[skipped]);
    estimate.high = std::exp(averages[averages.size() - 1 - skipped]);
  }
  return estimate;
}

}  // namespace headroom::bench
