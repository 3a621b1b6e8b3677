#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "shard/faulty_communicators.hpp"
#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::on_ranks;
using test::ToyModel;

TEST(StepFaults, GatheredBitFlipped_IsFoundAndNamedWhereVerified) {
  const auto train = [](bool verify) {
    on_ranks<int>(2, {}, [&](Job& job) {
      Communicators group = job.communicators();
      if (job.rank() == 1) {
        group.gather = std::make_shared<test::CorruptingGather>(group.gather);
      }
      ToyModel model(job, {.parameters = {.verify = verify}}, {}, group);
      model.step();
      model.params.finish();
      return 0;
    });
  };
  train(false);
  try {
    train(true);
    ADD_FAILURE() << "the wrong bit was not seen";
  } catch (const CommunicatorError& error) {
    EXPECT_NE(std::string(error.what()).find("unit '2': the gathered slice of shard rank 0"), std::string::npos)
        << error.what();
  }
}

TEST(StepFaults, GatherFailsAfterTheVote_NoRankUpdatesItsParameters) {
  std::atomic<bool> cut = false;
  on_ranks<int>(2, {}, [&](Job& job) {
    Communicators group = job.communicators();
    if (job.rank() == 1) {
      group.gather = std::make_shared<test::FailingGather>(group.gather, 5, cut);
    }
    ToyModel model(job, {}, {}, group);
    const StepReport report = model.step();  // voted, and far from computed
    if (job.rank() == 1) {
      cut = true;
    }
    EXPECT_TRUE(report.skipped());
    EXPECT_TRUE(std::isnan(report.loss()));
    EXPECT_THROW(model.step(), CommunicatorError);
    return 0;
  });
}

}  // namespace
}  // namespace headroom
