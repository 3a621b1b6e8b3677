#include <gtest/gtest.h>

#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

TEST(Text, Operations_AreSpelledAsTheContractSays) {
  PlanInput input = equal_units(2);
  input.units[1].name = "h.3";
  using Kind = ScheduleOpKind;
  EXPECT_EQ(to_text({.kind = Kind::micro, .micro = 12}, input), "micro 12");
  EXPECT_EQ(to_text({Kind::all_gather, 1, Phase::backward, 1, 0, 0}, input), "all_gather h.3.b@1");
  EXPECT_EQ(to_text({Kind::throttle, 1, Phase::forward, 0, 0, 2}, input), "throttle h.3.f''");
  EXPECT_EQ(to_text({Kind::throttle, 1, Phase::forward, 1, 0, 1}, input), "throttle h.3.f@1'");
  EXPECT_EQ(to_text({Kind::forward, 1, Phase::forward, 1, 0, 0}, input), "forward h.3");
  EXPECT_EQ(to_text({Kind::wait_reduce, 1, Phase::forward, 0, 0, 0}, input), "wait_reduce h.3");
  EXPECT_EQ(to_text({.kind = Kind::vote}, input), "vote");
  EXPECT_THROW((void)to_text({.kind = Kind::forward, .unit = 2}, input), InvalidInput);
  EXPECT_THROW((void)to_text({.kind = Kind::forward, .unit = -1}, input), InvalidInput);
  EXPECT_THROW((void)to_text({.kind = static_cast<Kind>(99)}, input), InvalidInput);
}

TEST(Text, LimitAboveTheReleasesOfAStep_MarksEveryStepBack) {
  // Two releases a step: the sixth last one before the first gather of this step is of the third step back.
  const Schedule schedule = backward_pre({.limit_all_gathers = 6})->plan(equal_units(1));
  EXPECT_EQ(schedule.text(),
            "micro 0\nthrottle 0.f'''\nall_gather 0.f\nwait_gather 0.f\nforward 0\nrelease 0.f\n"
            "throttle 0.b'''\nall_gather 0.b\nwait_gather 0.b\nbackward 0\nrelease 0.b\nreduce_scatter 0\n"
            "wait_reduce 0\nnorm\nvote\napply\n");
}

TEST(Text, WorldOfOne_OnlyComputes) {
  PlanInput input = equal_units(2);
  input.world = 1;
  const auto policy = backward_pre({.forward_prefetch = 2, .limit_all_gathers = 1, .limit_reduce_scatters = 1});
  EXPECT_EQ(policy->plan(input).text(), "micro 0\nforward 0\nforward 1\nbackward 1\nbackward 0\nnorm\nvote\napply\n");
}

TEST(Text, ScheduleOfFourRanks_IsThatOfTwo) {
  PlanInput input = tied_units(5);
  const Schedule two = backward_pre({.forward_prefetch = 1})->plan(input);
  input.world = 4;
  EXPECT_EQ(backward_pre({.forward_prefetch = 1})->plan(input).text(), two.text());
}

TEST(Text, FrozenUnit_IsGatheredAndReleasedAndNeverReduced) {
  PlanInput input = equal_units(2);
  freeze(input, 0b10);
  for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::hybrid}) {
    input.strategy = strategy;
    EXPECT_EQ(backward_post()->plan(input).text(),
              std::string("micro 0\nall_gather 0.f\nwait_gather 0.f\nforward 0\nrelease 0.f\n"
                          "all_gather 1.f\nwait_gather 1.f\nforward 1\nrelease 1.f\n"
                          "all_gather 1.b\nwait_gather 1.b\nbackward 1\nrelease 1.b\n"
                          "all_gather 0.b\nwait_gather 0.b\nbackward 0\nrelease 0.b\nreduce_scatter 0\n") +
                  (strategy == ShardStrategy::hybrid ? "all_reduce 0\n" : "") + "wait_reduce 0\nnorm\nvote\napply\n");
  }
  freeze(input, 0b11);
  EXPECT_EQ(backward_post()->plan(input).text().find("reduce"), std::string::npos);
}

// The limit's wait before a frozen unit's backward covers the last reduction: none is left for norm.
TEST(Text, FrozenUnitVisitedLast_LeavesNoReductionToWaitFor) {
  PlanInput input = equal_units(2);
  input.strategy = ShardStrategy::no_shard;
  freeze(input, 0b01);
  EXPECT_EQ(backward_pre({.limit_reduce_scatters = 1})->plan(input).text(),
            "micro 0\nforward 0\nforward 1\nbackward 1\nall_reduce 1\nwait_reduce 1\nbackward 0\nnorm\nvote\napply\n");
  EXPECT_NO_THROW(backward_pre({.limit_reduce_scatters = 1})->plan(input).validate());
}

// Two micro-batches: the tied unit is summed once in each, after its second visit; with limit 1 each sum is waited for.
TEST(Text, NoShardRevisitedUnit_IsReducedAfterItsLastVisit) {
  PlanInput input = tied_units(2);
  input.strategy = ShardStrategy::no_shard;
  input.micro_batches = 2;
  const auto policy = backward_pre({.forward_prefetch = 1, .limit_all_gathers = 1, .limit_reduce_scatters = 1});
  EXPECT_EQ(policy->plan(input).text(),
            "micro 0\nforward embedding\nforward 1\nforward embedding\n"
            "backward embedding\nbackward 1\nall_reduce 1\nwait_reduce 1\nbackward embedding\nall_reduce embedding\n"
            "micro 1\nforward embedding\nforward 1\nforward embedding\n"
            "wait_reduce embedding\nbackward embedding\nbackward 1\nall_reduce 1\n"
            "wait_reduce 1\nbackward embedding\nall_reduce embedding\n"
            "wait_reduce embedding\nnorm\nvote\napply\n");
}

// A set that a later visit within the window needs stays; so does the gradient until the last visit.
TEST(Text, UnitVisitedTwiceRunning_StaysGatheredWhereTheWindowReaches) {
  PlanInput input = equal_units(1);
  input.forward = {0, 0};
  input.backward = {0, 0};
  EXPECT_EQ(backward_pre({.forward_prefetch = 1})->plan(input).text(),
            "micro 0\nall_gather 0.f\nwait_gather 0.f\nforward 0\nwait_gather 0.f@1\nforward 0\nrelease 0.f@1\n"
            "all_gather 0.b\nwait_gather 0.b\nbackward 0\nwait_gather 0.b@1\nbackward 0\nrelease 0.b@1\n"
            "reduce_scatter 0\nwait_reduce 0\nnorm\nvote\napply\n");
  EXPECT_EQ(prefetch_policy(BackwardPrefetch::none)->plan(input).text(),
            "micro 0\nall_gather 0.f\nwait_gather 0.f\nforward 0\nrelease 0.f\n"
            "all_gather 0.f@1\nwait_gather 0.f@1\nforward 0\nrelease 0.f@1\n"
            "all_gather 0.b\nwait_gather 0.b\nbackward 0\nrelease 0.b\n"
            "all_gather 0.b@1\nwait_gather 0.b@1\nbackward 0\nrelease 0.b@1\n"
            "reduce_scatter 0\nwait_reduce 0\nnorm\nvote\napply\n");
}

TEST(Hash, EqualSchedules_AreEqualAndStable) {
  const auto plan = [] { return backward_pre({.forward_prefetch = 1})->plan(equal_units(3)); };
  EXPECT_EQ(plan().hash(), plan().hash());
  // Ranks of different builds compare it, so the value itself must not drift: FNV-1a, computed elsewhere.
  EXPECT_EQ(plan().hash(), 14447063353422093296U);
}

TEST(Hash, TextOrInputChanged_Differs) {
  const PlanInput input = equal_units(3);
  const std::uint64_t hash = backward_pre()->plan(input).hash();
  const auto differs = [&](auto change) {
    PlanInput other = input;
    change(other);
    return backward_pre()->plan(other).hash() != hash;
  };
  EXPECT_NE(backward_post()->plan(input).hash(), hash);
  EXPECT_TRUE(differs([](PlanInput& other) { ++other.units[2].parameter_bytes; }));
  EXPECT_TRUE(differs([](PlanInput& other) { ++other.units[2].gradient_bytes; }));
  EXPECT_TRUE(
      differs([](PlanInput& other) { std::swap(--other.units[0].gradient_bytes, ++other.units[1].gradient_bytes); }));
  EXPECT_TRUE(differs([](PlanInput& other) { other.units[0].name = "embedding"; }));
  EXPECT_TRUE(differs([](PlanInput& other) { other.world = 3; }));
  EXPECT_TRUE(differs([](PlanInput& other) { other.micro_batches = 2; }));
  EXPECT_TRUE(differs([](PlanInput& other) { other.accumulation = Accumulation::full; }));
  EXPECT_TRUE(differs([](PlanInput& other) { other.strategy = ShardStrategy::no_shard; }));
  EXPECT_FALSE(differs([](PlanInput&) {}));
}

std::string error_of(const PlanInput& input, const PrefetchOptions& options = {}) {
  try {
    (void)backward_pre(options)->plan(input);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Policy, KeptUnitThatIsNotThere_IsNamedWithThoseThatAre) {
  PrefetchOptions options;
  options.keep = PrefetchOptions::Keep::named;
  options.keep_units = {"1", "head"};
  for (const int world : {1, 2}) {
    for (const ShardStrategy strategy : kStrategies) {
      PlanInput input = equal_units(3);
      input.world = world;
      input.strategy = strategy;
      EXPECT_EQ(error_of(input, options), "keep after forward: there is no unit 'head': expected one of 0, 1, 2");
    }
  }
}

TEST(Policy, KeptByName_KeepsThoseUnits) {
  PrefetchOptions options;
  options.keep = PrefetchOptions::Keep::named;
  options.keep_units = {"2"};
  PrefetchOptions last;
  last.keep = PrefetchOptions::Keep::last;
  EXPECT_EQ(backward_pre(options)->plan(equal_units(3)).text(), backward_pre(last)->plan(equal_units(3)).text());
  // The tied unit is visited twice, so `last` is the block before its second visit.
  options.keep_units = {"2"};
  EXPECT_EQ(backward_pre(options)->plan(tied_units(3)).text(), backward_pre(last)->plan(tied_units(3)).text());
}

TEST(Policy, OptionsOutOfRange_AreRefused) {
  for (const int wrong : {0, -1, 2'000'000'000}) {
    EXPECT_THROW((void)backward_pre({.limit_all_gathers = wrong}), InvalidInput);
    EXPECT_THROW((void)backward_pre({.limit_reduce_scatters = wrong}), InvalidInput);
  }
  EXPECT_THROW((void)backward_pre({.forward_prefetch = -1}), InvalidInput);
  EXPECT_THROW((void)backward_pre({.keep_units = {"0"}}), InvalidInput);
}

TEST(Policy, WindowBeyondThePath_GathersToItsEnd) {
  EXPECT_EQ(backward_pre({.forward_prefetch = 2'000'000'000})->plan(equal_units(3)).text(),
            backward_pre({.forward_prefetch = 2})->plan(equal_units(3)).text());
}

TEST(Policy, InputThatCannotBePlanned_IsRefused) {
  const auto broken = [](auto change) {
    PlanInput input = equal_units(3);
    change(input);
    return error_of(input);
  };
  EXPECT_NE(broken([](PlanInput& input) { input.units.clear(); }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.units[1].name = "0"; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.units[1].name = ""; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.units[1].name = "a b"; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.units[1].name = "#"; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.units[1].parameter_bytes = SIZE_MAX; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.forward.push_back(3); }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.backward.push_back(-1); }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.micro_batches = 0; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.micro_batches = 2'000'000'000; }), "");
  EXPECT_NE(broken([](PlanInput& input) { input.world = 0; }), "");
}

TEST(Policy, Describe_SpellsTheOptions) {
  PrefetchOptions options{.forward_prefetch = 1, .limit_all_gathers = 2};
  options.keep = PrefetchOptions::Keep::named;
  options.keep_units = {"h.0", "h.1"};
  EXPECT_EQ(backward_post(options)->describe(),
            "backward-prefetch=post forward-prefetch=1 limit-all-gathers=2 limit-reduce-scatters=off "
            "keep-after-forward=h.0,h.1");
}

}  // namespace
}  // namespace headroom::testing
