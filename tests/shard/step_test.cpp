#include <headroom/parameters.hpp>
#include <headroom/trace.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {

/// How GoogleTest names a parameter.
static void PrintTo(const HostOptions& host, std::ostream* out) {
  *out << (host.executor == Executor::threads ? "threads" : "seeded ") << host.seed;
}

namespace {

using test::on_ranks;
using test::ToyModel;
using test::ToyOptions;

struct Outcome {
  std::uint32_t checksum = 0;
  std::vector<double> losses, norms;
  bool operator==(const Outcome&) const = default;
};

Outcome train(Job& job, const ToyOptions& options, int steps) {
  ToyModel model(job, options);
  Outcome outcome;
  std::vector<StepReport> reports;
  for (int i = 0; i < steps; ++i) {
    reports.push_back(model.step());
  }
  for (const StepReport& report : reports) {
    outcome.losses.push_back(report.loss());
    outcome.norms.push_back(report.gradient_norm());
  }
  model.params.prepare();
  outcome.checksum = model.params.crc32c();
  model.params.finish();
  return outcome;
}

std::vector<Outcome> train_world(int world, const HostOptions& host, const ToyOptions& options, int steps) {
  return on_ranks<Outcome>(world, host, [&](Job& job) { return train(job, options, steps); });
}

/// Policies that change only when things happen, never what is computed.
std::vector<std::shared_ptr<const SchedulePolicy>> policies() {
  using Keep = PrefetchOptions::Keep;
  return {
      prefetch_policy(BackwardPrefetch::none),
      prefetch_policy(BackwardPrefetch::none, {.forward_prefetch = 2, .limit_all_gathers = 2}),
      backward_pre(),
      backward_pre({.forward_prefetch = 1, .limit_all_gathers = 2, .limit_reduce_scatters = 2}),
      backward_pre({.forward_prefetch = 3, .limit_reduce_scatters = 1}),
      backward_pre({.limit_reduce_scatters = 3, .keep = Keep::last}),
      backward_post(),
      backward_post({.forward_prefetch = 1, .limit_all_gathers = 1, .limit_reduce_scatters = 2}),
      backward_post({.keep = Keep::all}),
  };
}

class StepExecutors : public testing::TestWithParam<HostOptions> {};

TEST_P(StepExecutors, EveryPolicyAndWorld_GivesOneResultOnAllRanks) {
  for (const int world : {1, 2, 3, 4}) {
    for (const bool tied : {false, true}) {
      for (const int micro_batches : {1, 3}) {
        ToyOptions options{.micro_batches = micro_batches, .tied = tied};
        options.policy = prefetch_policy(BackwardPrefetch::none);
        const Outcome expected = train_world(world, GetParam(), options, 3)[0];
        EXPECT_NE(expected.checksum, 0U);
        for (const auto& policy : policies()) {
          options.policy = policy;
          for (const Outcome& outcome : train_world(world, GetParam(), options, 3)) {
            EXPECT_EQ(outcome, expected) << policy->describe() << ", world " << world << ", tied " << tied
                                         << ", micro-batches " << micro_batches;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, StepExecutors,
                         testing::Values(HostOptions{Executor::threads, 1}, HostOptions{Executor::seeded, 1},
                                         HostOptions{Executor::seeded, 2}, HostOptions{Executor::seeded, 3}),
                         [](const auto& host) {
                           return host.param.executor == Executor::threads ? std::string("threads")
                                                                           : "seeded" + std::to_string(host.param.seed);
                         });

TEST(Step, ManyRanksAndMicroBatches_EqualOneRankWithTheSameGlobalBatch) {
  for (const int world : {2, 3, 4}) {
    for (const int micro_batches : {1, 2}) {
      for (const bool tied : {false, true}) {
        SCOPED_TRACE(testing::Message() << "world " << world << ", micro-batches " << micro_batches << ", tied "
                                        << tied);
        const Outcome alone = train_world(1, {}, {.micro_batches = world * micro_batches, .tied = tied}, 5)[0];
        const Outcome sharded = train_world(world, {}, {.micro_batches = micro_batches, .tied = tied}, 5)[0];
        for (std::size_t i = 0; i < alone.losses.size(); ++i) {
          EXPECT_NEAR(sharded.losses[i], alone.losses[i], 1e-5 * std::abs(alone.losses[i]));
          EXPECT_NEAR(sharded.norms[i], alone.norms[i], 1e-5 * std::abs(alone.norms[i]));
        }
      }
    }
  }
}

TEST(Step, Training_LowersTheLoss) {
  const Outcome outcome = train_world(2, {}, {}, 20)[0];
  EXPECT_LT(outcome.losses.back(), 0.5 * outcome.losses.front());
}

TEST(Step, GradientNotFinite_UpdatesNothingAndIsReported) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, {});
    model.step();
    const std::uint32_t before = model.params.crc32c();
    StepTransaction step = model.params.begin_step({.data_cursor = 1});
    for (int unit = 0; unit < 4; ++unit) {
      step.forward(unit).finish();
    }
    for (int unit = 3; unit >= 0; --unit) {
      UnitLease lease = step.backward(unit);
      if (unit == 1 && job.rank() == 1) {
        kernels::fill(lease.gradient("bias"), std::numeric_limits<double>::quiet_NaN(), model.compute);
      }
      lease.finish();
    }
    const StepReport report = step.commit(*model.adamw);
    EXPECT_TRUE(report.skipped());
    EXPECT_EQ(model.params.crc32c(), before);
    EXPECT_EQ(model.params.epoch(), 2);
    model.params.finish();
  });
}

TEST(Step, EqualUnits_LiveSetsReachTheBoundOfTheSchedule) {
  for (const auto& policy : policies()) {
    for (const int world : {2, 3}) {
      run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
        ToyModel model(job, {.units = 5, .policy = policy});
        job.device().trace().clear();
        for (int i = 0; i < 3; ++i) {
          model.step();
        }
        model.params.finish();
        model.compute.ref().synchronize();
        const ScheduleBound bound = model.params.schedule().bound();
        EXPECT_EQ(model.params.parameter_sets_peak(), bound.parameter_sets) << policy->describe();
        EXPECT_EQ(model.params.gradient_sets_peak(), bound.gradient_sets) << policy->describe();
        const auto lifetimes = model.params.take_lifetimes();
        EXPECT_LE(live_sets_peak(lifetimes, false, job.device().trace()), bound.parameter_sets) << policy->describe();
        EXPECT_LE(live_sets_peak(lifetimes, true, job.device().trace()), bound.gradient_sets) << policy->describe();
        EXPECT_GE(live_sets_peak(lifetimes, false, job.device().trace()), 1);
      });
    }
  }
}

TEST(Step, ParametersWritten_AreReadBackWhole) {
  for (const int world : {1, 2, 3, 5}) {
    run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, {.units = 2, .width = 7});
      std::vector<float> values(49);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i) - 20.5F;
      }
      model.params.write(1, 0, values);
      model.params.prepare();
      model.params.read(1, [&](int parameter, std::span<const float> found) {
        if (parameter == 0) {
          EXPECT_EQ(std::vector<float>(found.begin(), found.end()), values) << "world " << world;
        } else {
          EXPECT_EQ(std::vector<float>(found.begin(), found.end()), std::vector<float>(7, 0.1F));
        }
      });
      model.params.finish();
    });
  }
}

TEST(Step, InitialParameters_DoNotDependOnTheWorld) {
  const std::uint32_t alone = train_world(1, {}, {}, 0)[0].checksum;
  for (const int world : {2, 3, 5}) {
    EXPECT_EQ(train_world(world, {}, {}, 0)[0].checksum, alone) << "world " << world;
  }
}

}  // namespace
}  // namespace headroom
