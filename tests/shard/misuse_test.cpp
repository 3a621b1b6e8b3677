#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

/// What a trainer may get wrong, or give up: it is told, and can go on.
namespace headroom {
namespace {

using test::on_ranks;
using test::ToyModel;

TEST(StepFaults, PolicyPlansAnotherModel_IsRefusedOnAllRanks) {
  struct Foreign final : SchedulePolicy {
    [[nodiscard]] Schedule plan(const PlanInput& input) const override {
      PlanInput other = input;
      other.units[0].gradient_bytes = 0;
      return backward_pre()->plan(other);
    }
    [[nodiscard]] std::string describe() const override { return "foreign"; }
  };
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, {.policy = std::make_shared<Foreign>()});
    EXPECT_THROW(model.params.prepare(), InvalidInput);
  });
}

TEST(StepFaults, LeaseMovedFrom_IsRefused) {
  run_ranks(1, {}, {}, [](Job& job) {
    ToyModel model(job, {});
    StepTransaction step = model.params.begin_step();
    UnitLease lease = step.forward(0);
    const UnitLease taken = std::move(lease);
    EXPECT_THROW(lease.finish(), std::logic_error);  // NOLINT(bugprone-use-after-move): what is tested
    EXPECT_EQ(taken.unit(), 0);
  });
}

TEST(StepFaults, LeaseUsedAfterItsVisit_IsRefused) {
  run_ranks(1, {}, {}, [](Job& job) {
    ToyModel model(job, {});
    StepTransaction step = model.params.begin_step();
    UnitLease first = step.forward(0);
    first.finish();
    UnitLease second = step.forward(1);
    EXPECT_THROW(static_cast<void>(first.parameter(0)), std::logic_error);
    EXPECT_THROW(first.finish(), std::logic_error);
    second.finish();
  });
}

TEST(StepFaults, OptimizerOfAnotherManager_IsRefusedBeforeTheVote) {
  run_ranks(1, {}, {}, [](Job& job) {
    ToyModel model(job, {});
    ToyModel other(job, {});
    StepTransaction step = model.params.begin_step();
    EXPECT_THROW(step.commit(*other.adamw), std::logic_error);
  });
}

TEST(StepFaults, RankThrowsBetweenSteps_TheLauncherIsGivenThatErrorAndNotItsPeers) {
  try {
    on_ranks<int>(2, {}, [](Job& job) {
      ToyModel model(job, {});
      model.step();
      if (job.rank() == 1) {
        throw std::invalid_argument("mine");
      }
      model.step();
      return 0;
    });
    ADD_FAILURE() << "nobody was told";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
}

/// With nothing between the dropped step and the next: its slots were in use until the drain was over.
TEST(StepFaults, StepGivenUp_NextStepsGoOnAtOnce) {
  for (const HostOptions host : {HostOptions{}, HostOptions{.executor = Executor::seeded, .seed = 4}}) {
    const auto train = [&](bool drops) {
      return on_ranks<std::uint32_t>(2, host, [&](Job& job) {
        ToyModel model(job, {.policy = backward_pre({.forward_prefetch = 1, .limit_reduce_scatters = 2})});
        for (int i = 0; i < 3; ++i) {
          if (drops) {
            StepTransaction step = model.params.begin_step({.data_cursor = static_cast<std::uint64_t>(i)});
            step.forward(0).finish();
            EXPECT_THROW(step.abort(Fault::bad_input, "a bad batch"), StepAborted);
          }
          model.step();
        }
        const std::uint32_t checksum = model.params.crc32c();
        model.params.finish();
        return checksum;
      })[0];
    };
    EXPECT_EQ(train(true), train(false));
  }
}

TEST(StepFaults, ReadersCallbackThrows_TheCallerIsToldAndTrainingGoesOn) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, {});
    model.step();
    EXPECT_THROW(model.params.read(0, [](int, std::span<const float>) { throw std::runtime_error("disk full"); }),
                 std::runtime_error);
    model.step();
    model.params.finish();
  });
}

}  // namespace
}  // namespace headroom
