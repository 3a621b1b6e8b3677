// One run after another: the same training at every world size and under every schedule, in the memory it promised.
#include "options/exit_codes.hpp"
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>
#include <stdexcept>
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
        std::vector<Setting>{{"recompute", "unit"}}, std::vector<Setting>{{"shard", "shard_grad_op"}},
        std::vector<Setting>{{"communicators", "1"}, {"verify", "true"}},
        std::vector<Setting>{{"buffers", "observed"}, {"limit-all-gathers", "1"}},
        std::vector<Setting>{{"backward-prefetch", "pre"}, {"executor", "seeded"}, {"executor-seed", "5"}}));

/// The exit code of each rank that fails to make, or to run, `config`; 0 where it does not fail.
std::vector<int> exit_codes(const Config& config, const MakeWorkload& make) {
  std::vector<int> codes(static_cast<std::size_t>(config.ranks), 0);
  const TokenData data = TokenData::load(data_options(config));
  run_ranks(config.ranks, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    try {
      bench::Run run(config, job, data, make(config));
      while (run.next()) {
      }
    } catch (const std::exception& error) {
      codes[static_cast<std::size_t>(job.rank())] = exit_code_of(error);
    }
  });
  return codes;
}

TEST(Run, MemoryLimitThatCannotHoldTheModel_IsRefusedOnAllRanks) {
  const Config config = small_config({{"ranks", "2"}, {"memory-limit", "64KiB"}, {"width", "64"}});
  EXPECT_EQ(exit_codes(config, make_workload), (std::vector<int>{75, 75}));
}

/// Units of one size, each visited once a pass: where bounds are simple numbers.
class EqualUnits final : public Workload {
 public:
  explicit EqualUnits(int units, std::int64_t width) : units_(units), width_(width) {}

  [[nodiscard]] std::vector<UnitSpec> units() const override {
    std::vector<UnitSpec> units;
    for (int unit = 0; unit < units_; ++unit) {
      units.push_back({std::string("layer").append(std::to_string(unit)),
                       {{"weight", {width_, width_}, normal(0.1F)}, {"bias", {width_}, constant(0)}}});
    }
    return units;
  }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    const std::int64_t rows = batch.shape.tokens();
    std::vector<Tensor> activations;
    activations.push_back(tensors.activation("x", -1, rows, width_));
    kernels::fill(activations.back().view, 0.5, tensors.compute());
    for (int index = 0; index < units_; ++index) {
      UnitLease unit = step.forward(index);
      Tensor y = tensors.activation("y", index, rows, width_);
      kernels::linear_forward(activations.back().view, unit.parameter(0), unit.parameter(1), y.view,
                              {tensors.compute(), index});
      activations.push_back(std::move(y));
      unit.finish();
    }
    Tensor dy = tensors.activation("dy", -1, rows, width_);
    kernels::fill(dy.view, batch.loss_scale, tensors.compute());
    for (int index = units_ - 1; index >= 0; --index) {
      activations.pop_back();
      UnitLease unit = step.backward(index);
      Tensor dx = tensors.activation("dx", index, rows, width_);
      kernels::linear_backward(dy.view, activations.back().view, unit.parameter(0), dx.view, unit.gradient(0),
                               unit.gradient(1), {tensors.compute(), index});
      dy = std::move(dx);
      unit.finish();
    }
  }
  [[nodiscard]] double model_flops_per_token(std::int64_t) const override {
    return 6.0 * units_ * static_cast<double>(width_ * width_);
  }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return {{shape.tokens(), width_, width_, kernels::Transpose::no, kernels::Transpose::no, units_}};
  }

 private:
  int units_;
  std::int64_t width_;
};

constexpr int kUnits = 6;

class RunOfEqualUnits : public testing::TestWithParam<std::int64_t> {};  // their width

TEST_P(RunOfEqualUnits, TwoRanks_ReachTheBoundAndNoMore) {
  constexpr std::size_t kPageBytes = std::size_t{2} << 20;
  const auto make = [](const Config&) { return std::make_unique<EqualUnits>(kUnits, GetParam()); };
  for (const std::string prefetch : {"none", "pre", "post"}) {
    for (const int ahead : {0, 1, 2, 3}) {
      SCOPED_TRACE(prefetch + ", forward prefetch " + std::to_string(ahead));
      const Config config = small_config({{"ranks", "2"},
                                          {"steps", "3"},
                                          {"backward-prefetch", prefetch},
                                          {"forward-prefetch", std::to_string(ahead)},
                                          {"limit-reduce-scatters", "2"}});
      const SmallResult run = run_small(config, make).front();
      const Json& bound = run.report.at("schedule").at("bound");
      const int expected = std::min(kUnits, std::max(ahead + 1, prefetch == "pre" ? 2 : 1));
      EXPECT_EQ(bound.at("parameter_sets"), expected);
      EXPECT_EQ(run.report.at("memory").at("sets_peak").at("parameters"), expected);
      EXPECT_LE(run.record.gradient_sets_peak, bound.at("gradient_sets").get<int>());
      const Json& region = run.report.at("memory").at("regions").at("communication");
      const auto reserved = region.at("reserved_peak").get<std::size_t>();
      const auto needed = bound.at("communication_bytes").get<std::size_t>();
      EXPECT_GE(reserved, needed);
      EXPECT_LE(reserved, needed + std::max(needed * 3 / 100, kPageBytes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PartOfAPageAndSeveral, RunOfEqualUnits, testing::Values(32, 768));

/// Fails in its second step, on one rank.
class FailingUnits final : public Workload {
 public:
  FailingUnits(int rank, std::function<void()> fail) : rank_(rank), fail_(std::move(fail)) {}
  [[nodiscard]] std::vector<UnitSpec> units() const override { return units_.units(); }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    if (rank_ == 1 && ++steps_ == 2) fail_();
    units_.run(step, batch, tensors);
  }
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override {
    return units_.model_flops_per_token(sequence);
  }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return units_.gemm_calls(shape);
  }

 private:
  EqualUnits units_{2, 16};
  int rank_, steps_ = 0;
  std::function<void()> fail_;
};

TEST(Run, ExceptionOfOneRank_AbortsTheStepOnAll) {
  struct Case {
    std::function<void()> fail;
    Fault fault;
  };
  for (const Case& failure : {Case{[] { throw std::runtime_error("made to fail"); }, Fault::exception},
                              Case{[] { throw std::bad_alloc(); }, Fault::allocation}}) {
    const Config config = small_config({{"ranks", "3"}});
    const TokenData data = TokenData::load(data_options(config));
    std::vector<Fault> faults(3, Fault::none);
    run_ranks(3, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
      bench::Run run(config, job, data, std::make_unique<FailingUnits>(job.rank(), failure.fail));
      try {
        while (run.next()) {
        }
      } catch (const StepAborted& aborted) {
        EXPECT_EQ(aborted.rank(), 1) << aborted.what();
        faults[static_cast<std::size_t>(job.rank())] = aborted.fault();
      }
    });
    EXPECT_EQ(faults, std::vector<Fault>(3, failure.fault));
  }
}

/// Equal units whose second step leaves no room in the trace.
class TalkativeUnits final : public Workload {
 public:
  [[nodiscard]] std::vector<UnitSpec> units() const override { return units_.units(); }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    units_.run(step, batch, tensors);
    if (++steps_ != fill_at_) return;
    Trace& trace = tensors.compute().device().trace();
    while (trace.dropped() == 0) trace.add(OperationRecord{});
  }
  explicit TalkativeUnits(int fill_at) : fill_at_(fill_at) {}
  [[nodiscard]] double model_flops_per_token(std::int64_t) const override { return 1; }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return units_.gemm_calls(shape);
  }

 private:
  EqualUnits units_{2, 16};
  int fill_at_, steps_ = 0;
};

TEST(Run, TraceThatOverflows_LeavesItsFiguresUnknown) {
  const Json report =
      run_small(small_config({{"ranks", "2"}}), [](const Config&) { return std::make_unique<TalkativeUnits>(2); })
          .front()
          .report;
  EXPECT_GT(report.at("trace").at("dropped_records"), 0);
  EXPECT_EQ(report.at("trace").at("measured_steps"), 0);
  for (const char* pointer : {"/communication/busy_seconds", "/communication/all_gathers", "/gaps/launch",
                              "/device_idle_seconds", "/critical_path/compute", "/availability/visits",
                              "/availability/late", "/limiter/waits", "/limiter/waited_seconds"}) {
    EXPECT_TRUE(report.at(Json::json_pointer(pointer)).is_null()) << pointer;
  }
  EXPECT_GT(report.at("communication").at("bytes_sent"), 0);
}

TEST(Run, TraceThatOverflowsLate_IsReadUpToThere) {
  const Config config = small_config({{"ranks", "2"}, {"steps", "70"}});
  const Json report =
      run_small(config, [](const Config&) { return std::make_unique<TalkativeUnits>(50); }).front().report;
  EXPECT_EQ(report.at("trace").at("measured_steps"), 69 - 8);  // without those of one fold
  EXPECT_GT(report.at("trace").at("dropped_records"), 0);
  EXPECT_GT(report.at("critical_path").at("compute"), 0.0);
}

}  // namespace
}  // namespace headroom::bench
