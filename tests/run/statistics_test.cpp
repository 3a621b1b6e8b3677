// Intervals of a ratio, against tables and against what they promise.
#include "report/statistics.hpp"
#include "report/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace headroom::bench {
namespace {

TEST(SignedRank, CriticalValues_AreThoseOfTheTable) {
  // Wilcoxon's table, two-sided 0.05.
  const std::vector<std::pair<int, int>> table{{5, -1}, {6, 0}, {7, 2}, {8, 3}, {9, 5}, {10, 8}, {12, 13}, {20, 52}};
  for (const auto& row : table) EXPECT_EQ(signed_rank_critical_value(row.first), row.second) << row.first;
}

TEST(RatioEstimate, FewerThanSixRounds_HaveNoInterval) {
  const std::vector<double> ratios{1.1, 1.2, 1.1, 1.15, 1.12};
  const Estimate estimate = estimate_ratio(ratios);
  EXPECT_FALSE(estimate.low || estimate.high);
  EXPECT_NEAR(estimate.median, 1.13, 0.02);
}

TEST(RatioEstimate, SixRounds_SpanAllRatios) {
  const std::vector<double> ratios{1.3, 0.9, 1.1, 1.2, 1.0, 1.05};
  const Estimate estimate = estimate_ratio(ratios);
  EXPECT_DOUBLE_EQ(*estimate.low, 0.9);
  EXPECT_DOUBLE_EQ(*estimate.high, 1.3);
}

TEST(RatioEstimate, Interval_HoldsTheTruthAsOftenAsItSays) {
  constexpr int kExperiments = 4000;
  constexpr double kTruth = 1.04;
  for (const int rounds : {6, 7, 9, 15}) {
    SCOPED_TRACE("seed 11, rounds " + std::to_string(rounds));
    std::mt19937_64 random(11);
    std::lognormal_distribution<double> noise(0, 0.03);
    int covered = 0;
    for (int experiment = 0; experiment < kExperiments; ++experiment) {
      std::vector<double> ratios;
      for (int round = 0; round < rounds; ++round) ratios.push_back(kTruth * noise(random) / noise(random));
      const Estimate estimate = estimate_ratio(ratios);
      covered += *estimate.low <= kTruth && kTruth <= *estimate.high ? 1 : 0;
    }
    EXPECT_GE(covered, 0.94 * kExperiments);
    EXPECT_LE(covered, 0.985 * kExperiments);
  }
}

TEST(Quantile, BetweenOrderStatistics_IsLinear) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
}

ArmFigures figures(const std::vector<double>& seconds) {
  ArmFigures arm;
  arm.rounds["seconds_per_step"] = seconds;
  return arm;
}

TEST(Verdict, IntervalOnOneSideOfOne_NamesTheFasterArm) {
  const ArmFigures slow = figures({1.00, 1.01, 0.99, 1.00, 1.02, 0.98, 1.00});
  const ArmFigures fast = figures({0.90, 0.91, 0.90, 0.89, 0.90, 0.91, 0.90});
  EXPECT_EQ(decide(slow, fast, std::nullopt).verdict, "b");
  EXPECT_EQ(decide(fast, slow, std::nullopt).verdict, "a");
  EXPECT_EQ(decide(slow, slow, std::nullopt).verdict, "none");
}

TEST(Verdict, FewRoundsUnequalUpdatesOrNoMemory_ForbidASpeedVerdict) {
  const ArmFigures a = figures({1, 1, 1});
  const ArmFigures b = figures({2, 2, 2});
  EXPECT_EQ(decide(a, b, std::nullopt).verdict, "none");
  EXPECT_EQ(decide(a, b, "loss of step 0").verdict, "refused");
  ArmFigures gone = b;
  gone.infeasible = "out of memory";
  EXPECT_EQ(decide(a, gone, std::nullopt).verdict, "b_infeasible");
  EXPECT_EQ(decide(gone, a, std::nullopt).verdict, "a_infeasible");
  EXPECT_EQ(decide(gone, gone, std::nullopt).verdict, "none");
}

TEST(FirstDifference, OneBitOfTheParameters_IsNamed) {
  Outcome a;
  a.steps.resize(2);
  a.steps[1].step = 2;
  a.steps[1].loss = 2.5;
  a.parameters_crc32c = 7;
  Outcome b = a;
  EXPECT_FALSE(first_difference(a, b, Equivalence::bitwise));
  b.parameters_crc32c = 8;
  EXPECT_NE(first_difference(a, b, Equivalence::bitwise).value().find("parameters"), std::string::npos);
  b.steps[1].loss = std::nextafter(2.5, 3.0);
  EXPECT_NE(first_difference(a, b, Equivalence::bitwise).value().find("loss of step 2"), std::string::npos);
  EXPECT_FALSE(first_difference(a, b, Equivalence::tolerance));
}

}  // namespace
}  // namespace headroom::bench
