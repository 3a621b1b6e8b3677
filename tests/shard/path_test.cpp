#include <headroom/parameters.hpp>
#include <headroom/trace.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::ToyModel;
using test::ToyOptions;

ToyOptions prefetching() {
  ToyOptions options;
  options.policy = backward_pre({.forward_prefetch = 1, .limit_reduce_scatters = 2});
  return options;
}

PathStatus status_of(const ToyModel& model, const std::string& name) {
  const std::vector<PathStatus> all = model.params.paths();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PathStatus& path) { return path.name == name; });
  return found == all.end() ? PathStatus{} : *found;
}

/// The most sets that were live at once in one step.
int sets_of_step(ToyModel& model) {
  static_cast<void>(model.params.take_lifetimes());
  model.compute.ref().device().trace().clear();
  static_cast<void>(model.step().loss());
  return live_sets_peak(model.params.take_lifetimes(), false, model.compute.ref().device().trace());
}

/// In issue order, the sets that were gathered ahead of their visit in the last step.
std::size_t gathered_ahead(const ToyModel& model, std::int64_t step) {
  std::int64_t now = 0;
  std::size_t ahead = 0;
  for (const AllocatorEvent& event : model.memory.events()) {
    now = event.kind == AllocatorEvent::Kind::step ? static_cast<std::int64_t>(event.allocation) : now;
    ahead += event.kind == AllocatorEvent::Kind::alloc && event.tag == Tag::parameter_full_next && now == step ? 1 : 0;
  }
  return ahead;
}

TEST(StepPath, UndeclaredPath_FirstStepPrefetchesNothingAndTheSecondDoes) {
  for (const int world : {1, 2, 3}) {
    run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, prefetching());
      model.path_name = "detour";
      model.path = {0, 2, 3, 0};
      model.step();
      EXPECT_NE(model.params.crc32c(), 0U);  // between steps, also where the path was learnt just now
      EXPECT_EQ(model.params.schedule("detour").input().forward, model.path);
      EXPECT_EQ(status_of(model, "detour").prefetch_off, "");
      EXPECT_FALSE(status_of(model, "detour").declared);
      model.step();
      model.step();
      EXPECT_EQ(status_of(model, "detour").steps, 3);
      EXPECT_EQ(gathered_ahead(model, 1), 0U);
      EXPECT_EQ(gathered_ahead(model, 2) > 0, world > 1);
      EXPECT_EQ(model.params.schedule("detour").input().forward, model.path);
      model.params.finish();
      model.memory.check();
    });
  }
}

TEST(StepPath, UndeclaredPath_TrainsAsTheDeclaredOne) {
  for (const int micro_batches : {1, 3}) {
    for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::no_shard, ShardStrategy::hybrid}) {
      ToyOptions options = prefetching();
      options.micro_batches = micro_batches;
      options.parameters.strategy = strategy;
      options.groups.shard_ranks = strategy == ShardStrategy::no_shard ? 1 : strategy == ShardStrategy::hybrid ? 2 : 0;
      const auto losses = [&](const std::string& name, Path kind) {
        return test::on_ranks<std::vector<double>>(4, {}, [&](Job& job) {
          ToyModel model(job, options);
          model.path_name = name;
          model.path_kind = kind;
          std::vector<double> all;
          for (int i = 0; i < 3; ++i) {
            const StepReport report = model.step();
            all.push_back(report.loss());
            all.push_back(report.gradient_norm());
          }
          model.params.finish();
          model.memory.check();
          return all;
        })[3];
      };
      const std::vector<double> declared = losses("default", Path::fixed);
      // No unit is visited twice, so even the order of sums is the same.
      EXPECT_EQ(losses("learnt", Path::fixed), declared) << "micro-batches " << micro_batches;
      EXPECT_EQ(losses("any", Path::dynamic), declared) << "micro-batches " << micro_batches;
    }
  }
}

TEST(StepPath, Dynamic_MayDifferFromStepToStepAndHoldsOneSet) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, prefetching());
    model.path_name = "any";
    model.path_kind = Path::dynamic;
    for (const std::vector<int>& visits : {std::vector<int>{0, 1}, {0, 3, 2, 3}, {2}, {0, 1}}) {
      model.path = visits;
      EXPECT_EQ(sets_of_step(model), 1);
    }
    EXPECT_NE(status_of(model, "any").prefetch_off, "");
    EXPECT_EQ(status_of(model, "any").steps, 4);
    model.params.finish();
  });
}

TEST(StepPath, KnownPathsInTurn_KeepTheirPrefetch) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, prefetching());
    model.params.declare_path("even", {0, 1, 3}, {3, 1, 0});
    model.params.declare_path("odd", {0, 2, 3}, {3, 2, 0});
    for (int step = 1; step <= 4; ++step) {
      const bool even = step % 2 == 0;
      model.path_name = even ? "even" : "odd";
      model.path = {0, even ? 1 : 2, 3};
      model.step();
      EXPECT_EQ(gathered_ahead(model, step), 4U) << "two in forward, two in backward, step " << step;
    }
    model.params.finish();
  });
}

TEST(StepPath, MicroBatchesThatDiffer_StayUnlearntWithTheReason) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyOptions options = prefetching();
    options.micro_batches = 2;
    ToyModel model(job, options);
    model.path_name = "uneven";
    int visits = 0;
    model.path = {0, 1};
    for (int step = 0; step < 2; ++step) {
      model.step([&](Phase phase, int) {
        visits += 1;
        // The second micro-batch leaves out what the first visited: changed while its visits are under way.
        if (phase == Phase::backward && visits % 4 == 0) {
          model.path = {0};
        }
      });
      model.path = {0, 1};
      visits = 0;
    }
    EXPECT_NE(status_of(model, "uneven").prefetch_off.find("different units"), std::string::npos);
    model.params.finish();
  });
}

/// One rank takes another branch alone: all name it, none hangs, and the next step goes on.
TEST(StepPath, RankTakesAnotherBranchAlone_IsNamedOnAllRanksAndTheStepIsRetried) {
  for (const Path kind : {Path::fixed, Path::dynamic}) {
    for (const int stray : {0, 1, 2}) {
      run_ranks(3, {}, {.deadline = test::kDeadline}, [&](Job& job) {
        ToyModel model(job, prefetching());
        model.path_name = "branch";
        model.path_kind = kind;
        model.path = {0, job.rank() == stray ? 2 : 1, 3};
        const std::uint32_t before = (model.params.prepare(), model.params.crc32c());
        try {
          model.step();
          ADD_FAILURE() << "rank " << job.rank() << " was not told";
        } catch (const StepAborted& error) {
          EXPECT_EQ(error.fault(), Fault::order);
          EXPECT_EQ(error.rank(), stray == 0 ? 1 : stray) << "the lowest that departs from rank 0";
          const std::string text = error.what();
          EXPECT_NE(text.find("forward 2"), std::string::npos) << text;
          EXPECT_NE(text.find("forward 1"), std::string::npos) << text;
        }
        EXPECT_EQ(model.params.crc32c(), before);
        model.path = {0, 1, 3};
        model.step();
        model.step();
        model.params.finish();
        model.memory.check();
      });
    }
  }
}

TEST(StepPath, RankFailsInAnUnplannedStep_PeersAreToldAtTheirNextVisit) {
  for (const int at : {1, 3, 5, 8}) {
    run_ranks(3, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, prefetching());
      model.path_name = "any";
      model.path_kind = Path::dynamic;
      model.step();
      int visits = 0;
      const auto fail = [&](Phase, int) {
        if (++visits == at && job.rank() == 1) {
          throw std::runtime_error("a bad batch");
        }
      };
      try {
        model.step(fail);
        ADD_FAILURE() << "rank " << job.rank() << " was not told";
      } catch (const StepAborted& error) {
        EXPECT_EQ(error.rank(), 1);
      } catch (const std::runtime_error&) {
        EXPECT_EQ(job.rank(), 1);
        EXPECT_THROW(static_cast<void>(model.params.begin_step()), StepAborted);  // says it to the peers
      }
      model.step();
      EXPECT_EQ(model.params.gradient_sets_peak(), 1) << "the step that was dropped left a gradient behind";
      model.params.finish();
      model.memory.check();
    });
  }
}

/// A reserve that is refused is asked for again by the next attempt, on all ranks.
TEST(StepPath, ReserveRefused_NextAttemptTakesIt) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyOptions options = prefetching();
    options.width = 512;
    options.parameters.strategy = ShardStrategy::no_shard;  // whose plan has no slots that the reserve could share
    options.groups.shard_ranks = 1;
    ToyModel model(job, options, {.limit_bytes = 64U << 20});
    model.step();
    std::vector<Buffer> hogs;
    for (std::size_t bytes = 8U << 20; job.rank() == 1 && bytes >= 4096; bytes /= 2) {
      while (auto buffer = model.memory.try_allocate({.bytes = bytes, .name = "hog"}, model.compute)) {
        hogs.push_back(std::move(*buffer));
      }
    }
    EXPECT_THROW(static_cast<void>(model.params.begin_step({.path = "any", .kind = Path::dynamic})), OutOfMemory);
    hogs.clear();
    model.path_name = "any";
    model.path_kind = Path::dynamic;
    model.step();
    model.params.finish();
  });
}

TEST(StepPath, PathsDifferBetweenRanks_AreNamedAtBeginStep) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, prefetching());
    model.params.prepare();
    model.path_name = job.rank() == 0 ? "left" : "right";
    try {
      model.step();
      ADD_FAILURE() << "accepted";
    } catch (const CollectiveMismatch& error) {
      EXPECT_NE(std::string(error.what()).find("path right"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace headroom
