// One run after another: the same training at every world size and under every schedule, in the memory it promised.
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace headroom::bench {
namespace {

TEST(Run, RanksThatShareABatch_TrainLikeOne) {
  const SmallResult alone = run_small(small_config({{"micro-batch", "12"}})).front();
  struct Split {
    const char *ranks, *micro_batch, *accumulate;
  };
  for (const Split& split : {Split{"2", "6", "1"}, Split{"3", "4", "1"}, Split{"4", "3", "1"}, Split{"2", "3", "2"}}) {
    SCOPED_TRACE(std::string(split.ranks) + " ranks, accumulate " + split.accumulate);
    const std::vector<SmallResult> ranks = run_small(
        small_config({{"ranks", split.ranks}, {"micro-batch", split.micro_batch}, {"accumulate", split.accumulate}}));
    ASSERT_EQ(ranks.front().steps.size(), alone.steps.size());
    for (std::size_t step = 0; step < alone.steps.size(); ++step) {
      EXPECT_NEAR(ranks.front().steps[step].loss, alone.steps[step].loss, 2e-5 * alone.steps[step].loss);
      EXPECT_NEAR(ranks.front().steps[step].gradient_norm, alone.steps[step].gradient_norm,
                  1e-4 * alone.steps[step].gradient_norm);
    }
    for (const SmallResult& rank : ranks) EXPECT_EQ(rank.crc32c, ranks.front().crc32c);
  }
}

TEST(Run, LossOfRepeatedText_Falls) {
  const SmallResult run = run_small(small_config({{"steps", "30"}, {"micro-batch", "8"}})).front();
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss - 0.5);
  EXPECT_NEAR(run.steps.front().loss, std::log(128.0), 0.3);  // nothing is known at the start
}

class RunUnderSchedule : public testing::TestWithParam<std::vector<Setting>> {};

TEST_P(RunUnderSchedule, TwoRanks_EndBitwiseTheSame) {
  const auto with_two_ranks = [](std::vector<Setting> settings) {
    settings.insert(settings.end(), {{"ranks", "2"}, {"layers", "3"}, {"accumulate", "2"}, {"steps", "3"}});
    return run_small(small_config(std::move(settings)));
  };
  const SmallResult plain = with_two_ranks({{"backward-prefetch", "none"}, {"forward-prefetch", "0"}}).front();
  const std::vector<SmallResult> ranks = with_two_ranks(GetParam());
  for (const SmallResult& rank : ranks) {
    EXPECT_EQ(rank.crc32c, plain.crc32c);
    for (std::size_t step = 0; step < plain.steps.size(); ++step) {
      EXPECT_EQ(rank.steps[step].loss, plain.steps[step].loss);
      EXPECT_EQ(rank.steps[step].gradient_norm, plain.steps[step].gradient_norm);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RunUnderSchedule,
    testing::Values(
        std::vector<Setting>{{"backward-prefetch", "pre"}}, std::vector<Setting>{{"backward-prefetch", "post"}},
        std::vector<Setting>{{"backward-prefetch", "pre"}, {"forward-prefetch", "3"}, {"limit-all-gathers", "off"}},
        std::vector<Setting>{{"backward-prefetch", "post"}, {"limit-reduce-scatters", "1"}},
        std::vector<Setting>{{"backward-prefetch", "pre"}, {"keep-after-forward", "all"}},
        std::vector<Setting>{{"backward-prefetch", "post"}, {"keep-after-forward", "last"}},
        std::vector<Setting>{{"backward-prefetch", "pre"}, {"executor", "seeded"}, {"executor-seed", "5"}}));

TEST(Run, MemoryLimitThatCannotHoldTheModel_IsRefusedOnAllRanks) {
  EXPECT_THROW(
      {
        try {
          run_small(small_config({{"ranks", "2"}, {"memory-limit", "64KiB"}, {"width", "64"}}));
        } catch (const std::exception& error) {
          EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos) << error.what();
          throw;
        }
      },
      std::exception);
}

/// Units of one size, each visited once a pass: where bounds are simple numbers.
class EqualUnits final : public Workload {
 public:
  explicit EqualUnits(int units) : units_(units) {}

  void add_units(ParameterManager& parameters) override {
    for (int unit = 0; unit < units_; ++unit) {
      parameters.add_unit("layer" + std::to_string(unit),
                          {{"weight", {kWidth, kWidth}, normal(0.1F)}, {"bias", {kWidth}, constant(0)}});
    }
  }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    const std::int64_t rows = batch.shape.tokens();
    std::vector<Tensor> activations;
    activations.push_back(tensors.activation("x", -1, rows, kWidth));
    kernels::fill(activations.back().view, 0.5, tensors.compute());
    for (int index = 0; index < units_; ++index) {
      UnitLease unit = step.forward(index);
      Tensor y = tensors.activation("y", index, rows, kWidth);
      kernels::linear_forward(activations.back().view, unit.parameter(0), unit.parameter(1), y.view,
                              {tensors.compute(), index});
      activations.push_back(std::move(y));
      unit.finish();
    }
    Tensor dy = tensors.activation("dy", -1, rows, kWidth);
    kernels::fill(dy.view, batch.loss_scale, tensors.compute());
    for (int index = units_ - 1; index >= 0; --index) {
      activations.pop_back();
      UnitLease unit = step.backward(index);
      Tensor dx = tensors.activation("dx", index, rows, kWidth);
      kernels::linear_backward(dy.view, activations.back().view, unit.parameter(0), dx.view, unit.gradient(0),
                               unit.gradient(1), {tensors.compute(), index});
      dy = std::move(dx);
      unit.finish();
    }
  }
  [[nodiscard]] double model_flops_per_token(std::int64_t) const override { return 6.0 * units_ * kWidth * kWidth; }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return {{shape.tokens(), kWidth, kWidth, kernels::Transpose::no, kernels::Transpose::no, units_}};
  }

 private:
  static constexpr std::int64_t kWidth = 32;
  int units_;
};

constexpr int kUnits = 6;

TEST(Run, EqualUnitsOnTwoRanks_ReachTheBoundAndNoMore) {
  for (const std::string prefetch : {"none", "pre", "post"}) {
    for (const int ahead : {0, 1, 2, 3}) {
      SCOPED_TRACE(prefetch + ", forward prefetch " + std::to_string(ahead));
      const Config config = small_config({{"ranks", "2"},
                                          {"backward-prefetch", prefetch},
                                          {"forward-prefetch", std::to_string(ahead)},
                                          {"limit-reduce-scatters", "2"}});
      const SmallResult run =
          run_small(config, [](const Config&) { return std::make_unique<EqualUnits>(kUnits); }).front();
      const int expected = std::min(kUnits, std::max(ahead + 1, prefetch == "pre" ? 2 : 1));
      EXPECT_EQ(run.report.at("schedule").at("bound").at("parameter_sets"), expected);
      EXPECT_EQ(run.report.at("memory").at("sets_peak").at("parameters"), expected);
      EXPECT_LE(run.record.gradient_sets_peak, run.report.at("schedule").at("bound").at("gradient_sets").get<int>());
      const auto reserved = run.report.at("memory").at("regions").at("communication").at("reserved_peak");
      EXPECT_GE(reserved.get<std::size_t>(),
                run.report.at("schedule").at("bound").at("communication_bytes").get<std::size_t>());
    }
  }
}

}  // namespace
}  // namespace headroom::bench
