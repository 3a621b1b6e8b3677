#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <span>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

/// One rank does what the others do not: every rank gets one error with one text, and no rank waits for ever.
namespace headroom {
namespace {

using test::on_ranks;
using test::ToyModel;
using test::ToyOptions;

struct Told {
  std::string text;
  Fault fault = Fault::none;
  int rank = -1;
};

/// Runs `body` on each rank and keeps what it throws as StepAborted.
std::vector<Told> told(int world, const std::function<void(Job&)>& body) {
  return on_ranks<Told>(world, {}, [&](Job& job) -> Told {
    try {
      body(job);
    } catch (const StepAborted& error) {
      return {error.what(), error.fault(), error.rank()};
    }
    return {};
  });
}

void expect_all_told(const std::vector<Told>& all, Fault fault, int rank, const std::string& says) {
  for (const Told& one : all) {
    EXPECT_EQ(one.text, all[0].text);
    EXPECT_EQ(one.fault, fault) << one.text;
    EXPECT_EQ(one.rank, rank) << one.text;
    EXPECT_NE(one.text.find(says), std::string::npos) << one.text;
  }
}

TEST(StepFaults, RankThrowsInMidStepAndGoes_PeersAreToldAndDoNotHang) {
  const std::vector<Told> all = told(3, [](Job& job) {
    try {
      ToyModel model(job, {});
      model.step([&](Phase phase, int unit) {
        if (job.rank() == 2 && phase == Phase::backward && unit == 2) {
          throw std::runtime_error("a bug of the trainer");
        }
      });
    } catch (const std::runtime_error& error) {
      if (job.rank() != 2) {
        throw;
      }
      EXPECT_STREQ(error.what(), "a bug of the trainer");
    }
  });
  for (const int rank : {0, 1}) {
    const Told& peer = all[static_cast<std::size_t>(rank)];
    EXPECT_EQ(peer.fault, Fault::exception);
    EXPECT_NE(peer.text.find("(rank 2): the step was abandoned before backward 2"), std::string::npos) << peer.text;
  }
}

TEST(StepFaults, TwoRanksFail_TheGravestOfTheLowestRankWins) {
  expect_all_told(told(4,
                       [](Job& job) {
                         ToyModel model(job, {});
                         StepTransaction step = model.params.begin_step();
                         step.forward(0).finish();
                         if (job.rank() == 1) {
                           step.abort(Fault::bad_input, "one");
                         }
                         if (job.rank() >= 2) {
                           step.forward(3).finish();
                         }
                         step.forward(1).finish();
                         step.forward(2).finish();
                         step.forward(3).finish();
                         for (int unit = 3; unit >= 0; --unit) {
                           step.backward(unit).finish();
                         }
                         step.commit(*model.adamw);
                       }),
                  Fault::order, 2, "(rank 2): expected forward 1");
}

TEST(StepFaults, PolicyDiffersOnOneRank_PrepareNamesTheDifferenceOnAllRanks) {
  const std::vector<std::string> texts = on_ranks<std::string>(3, {}, [](Job& job) -> std::string {
    ToyModel model(job, {.policy = job.rank() == 1 ? backward_post() : backward_pre()});
    try {
      model.params.prepare();
    } catch (const CollectiveMismatch& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    EXPECT_NE(text.find("rank 1 has"), std::string::npos) << text;
  }
}

TEST(StepFaults, ShapeDiffersOnOneRank_PrepareNamesTheParameterOnAllRanks) {
  const std::vector<std::string> texts = on_ranks<std::string>(2, {}, [](Job& job) -> std::string {
    ToyModel model(job, {.width = job.rank() == 1 ? 20 : 24});
    try {
      model.params.prepare();
    } catch (const CollectiveMismatch& error) {
      return error.what();
    }
    return "";
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("rank 0 has '0.weight [24, 24]', rank 1 has '0.weight [20, 20]'"), std::string::npos)
      << texts[0];
}

TEST(StepFaults, LimitTooSmallOnOneRank_PrepareRefusesOnAllRanks) {
  const std::vector<std::string> texts = on_ranks<std::string>(2, {}, [](Job& job) -> std::string {
    ToyModel model(job, {.units = 6, .width = 512},
                   {.limit_bytes = job.rank() == 1 ? std::size_t{16} << 20 : std::size_t{0}});
    try {
      model.params.prepare();
    } catch (const OutOfMemory& error) {
      return error.what();
    }
    return "";
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("(rank 1): "), std::string::npos) << texts[0];
}

/// A policy of a user that cannot plan.
class BrokenPolicy final : public SchedulePolicy {
 public:
  [[nodiscard]] Schedule plan(const PlanInput&) const override { throw std::runtime_error("cannot plan this"); }
  [[nodiscard]] std::string describe() const override { return "broken"; }
};

TEST(StepFaults, PolicyThrowsOnOneRank_PrepareTellsAllRanks) {
  expect_all_told(told(3,
                       [](Job& job) {
                         ToyOptions options;
                         if (job.rank() == 2) {
                           options.policy = std::make_shared<BrokenPolicy>();
                         }
                         ToyModel model(job, options);
                         model.params.prepare();
                       }),
                  Fault::exception, 2, "(rank 2): cannot plan this");
}

TEST(StepFaults, OptimizerDiffersOnOneRank_CommitNamesBothOnAllRanks) {
  const std::vector<std::string> texts = on_ranks<std::string>(2, {}, [](Job& job) -> std::string {
    ToyModel model(job, {.adamw = {.learning_rate = job.rank() == 1 ? 0.5 : 0.25}});
    try {
      model.step();
    } catch (const CollectiveMismatch& error) {
      return error.what();
    }
    return "";
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("AdamW 0.25"), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find("AdamW 0.5"), std::string::npos) << texts[0];
}

/// The visits of one step, in order: where an allocation can be refused.
constexpr int kVisits = 8;

TEST(StepFaults, AllocationRefusedAtAnyVisitOfAnyRank_StepIsDroppedAndRetriedExactly) {
  for (const int world : {1, 2, 3}) {
    for (const int micro_batches : {1, 2}) {
      const ToyOptions options{.micro_batches = micro_batches};
      const auto expected = on_ranks<std::uint32_t>(world, {}, [&](Job& job) {
        ToyModel model(job, options);
        for (int i = 0; i < 3; ++i) {
          model.step();
        }
        return model.params.crc32c();
      });
      for (int failing = 0; failing < world; ++failing) {
        for (int at = 0; at < kVisits * micro_batches; ++at) {
          const auto found = on_ranks<std::uint32_t>(world, {}, [&](Job& job) {
            ToyModel model(job, options, {.limit_bytes = std::size_t{64} << 20});
            model.step();
            const std::uint32_t before = model.params.crc32c();
            const std::size_t live = model.memory.statistics().allocated_bytes.current;
            int visit = 0;
            bool refused = false;
            const auto refuse = [&](Phase, int) {
              if (visit++ == at && job.rank() == failing && !refused) {
                refused = true;
                const Buffer huge =
                    model.memory.allocate({.bytes = std::size_t{1} << 30, .name = "huge"}, model.compute);
              }
            };
            try {
              model.step(refuse);
              ADD_FAILURE() << "the step went through, rank " << job.rank();
            } catch (const OutOfMemory&) {
              EXPECT_EQ(job.rank(), failing);
              EXPECT_THROW(model.step(), StepAborted);  // the vote on the dropped step
            } catch (const StepAborted& error) {
              EXPECT_EQ(error.fault(), Fault::allocation);
              EXPECT_EQ(error.rank(), failing);
            }
            EXPECT_EQ(model.params.crc32c(), before);
            EXPECT_EQ(model.memory.statistics().allocated_bytes.current, live);
            model.step();
            model.step();
            const std::uint32_t checksum = model.params.crc32c();
            model.params.finish();
            return checksum;
          });
          EXPECT_EQ(found, expected) << "world " << world << ", rank " << failing << ", visit " << at;
        }
      }
    }
  }
}

TEST(StepFaults, DataCursorDiffers_IsRefusedOnAllRanks) {
  const auto refused = on_ranks<int>(2, {}, [](Job& job) {
    ToyModel model(job, {});
    try {
      static_cast<void>(model.params.begin_step({.data_cursor = job.rank() == 0 ? 4U : 9U}));
    } catch (const CollectiveMismatch& error) {
      EXPECT_NE(std::string(error.what()).find("between 4 and 9"), std::string::npos) << error.what();
      return 1;
    }
    return 0;
  });
  EXPECT_EQ(refused, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace headroom
