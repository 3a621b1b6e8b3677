#include "shard/misbehaviour.hpp"

#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <span>

#include "runtime/shard/consensus.hpp"
#include "shard/launched.hpp"
#include "shard/world.hpp"

/// Each misbehaviour, of each rank: one text on all ranks, no rank waits for ever, and a new model of the same job
/// works.
namespace headroom {
namespace {

using test::Misbehaviour;

class StepMisbehaviour : public testing::TestWithParam<Misbehaviour> {};

TEST_P(StepMisbehaviour, OfAnyRank_IsNamedOnAllRanks) {
  const Misbehaviour& wrong = GetParam();
  for (const int world : test::launched_worlds()) {
    for (int culprit = 0; culprit < world; ++culprit) {
      test::launch(world, [&](Job& job) {
        const auto control = job.communicators().control;
        std::string text;
        try {
          wrong.act(job, culprit);
          ADD_FAILURE() << "rank " << job.rank() << " was told nothing";
        } catch (const StepAborted& error) {
          text = error.what();
          EXPECT_EQ(error.fault(), wrong.fault) << text;
          EXPECT_EQ(error.rank(), wrong.named(culprit)) << text;
        }
        EXPECT_NE(text.find("(rank " + std::to_string(wrong.named(culprit)) + "): " + wrong.says), std::string::npos)
            << text;
        EXPECT_EQ(text, detail::share_text(*control, text, 0));

        test::ToyModel again(job, {});
        EXPECT_GT(again.step().loss(), 0);
        again.params.finish();
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Step, StepMisbehaviour, testing::ValuesIn(test::misbehaviours()),
                         [](const auto& wrong) { return wrong.param.name; });

TEST(StepLaunch, EveryPolicy_GivesTheChecksumOfRanksAsThreads) {
  for (const int world : test::launched_worlds()) {
    const test::ToyOptions options{.micro_batches = 2, .tied = true, .policy = backward_post()};
    const auto train = [](Job& job, const test::ToyOptions& with) {
      test::ToyModel model(job, with);
      for (int i = 0; i < 3; ++i) {
        model.step();
      }
      const std::uint32_t checksum = model.params.crc32c();
      model.params.finish();
      return checksum;
    };
    const std::uint32_t expected =
        test::on_ranks<std::uint32_t>(world, {}, [&](Job& job) { return train(job, options); })[0];
    test::launch(world, [&](Job& job) {
      for (const auto& policy : {backward_pre({.forward_prefetch = 2, .limit_reduce_scatters = 1}), backward_post(),
                                 prefetch_policy(BackwardPrefetch::none)}) {
        test::ToyOptions with = options;
        with.policy = policy;
        EXPECT_EQ(train(job, with), expected) << policy->describe();
      }
    });
  }
}

}  // namespace
}  // namespace headroom
