#pragma once

#include <optional>
#include <span>
#include <vector>

namespace headroom::bench {

/// Linear between order statistics (type 7 of Hyndman and Fan, 1996); `values` in any order, at least one; q in [0, 1].
[[nodiscard]] double quantile(std::span<const double> values, double q);

/// An estimate with the interval that holds the true value in at least 95 of 100 experiments; no interval where the
/// sample is too small for it.
struct Estimate {
  double median = 0;
  std::optional<double> low, high;
};

/// Of the ratio b/a, from one positive ratio a paired round: the Hodges-Lehmann estimate (median of the Walsh averages
/// of the logarithms) and the interval that inverts Wilcoxon's signed-rank test with its exact distribution (Hollander,
/// Wolfe and Chicken, section 3.4). Fewer than six rounds cannot reach 95 %. At least one ratio.
[[nodiscard]] Estimate estimate_ratio(std::span<const double> ratios);

/// The largest t with P(T <= t) <= 0.025, T the signed-rank statistic of n pairs; -1 where there is none.
[[nodiscard]] int signed_rank_critical_value(int n);

}  // namespace headroom::bench
