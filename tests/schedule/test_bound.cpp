#include <gtest/gtest.h>

#include <utility>

#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

using Keep = PrefetchOptions::Keep;

/// Adds up, line by line from the text, what is live and not resident.
ScheduleBound count_from_text(const Schedule& schedule) {
  struct Reduction {
    int unit, micro, counted;
  };
  const PlanInput& input = schedule.input();
  const auto& units = input.units;
  const bool no_shard = input.strategy == ShardStrategy::no_shard;
  std::vector<int> gathered(units.size(), 0), computing(units.size(), 0);
  std::vector<Reduction> outstanding;
  bool resident = false;  // The gradients of this micro-batch.
  ScheduleBound bound;
  for (const ScheduleOp& op : schedule.ops()) {
    const auto unit = static_cast<std::size_t>(op.unit);
    const bool reduces =
        op.kind == ScheduleOpKind::reduce_scatter || (no_shard && op.kind == ScheduleOpKind::all_reduce);
    if (op.kind == ScheduleOpKind::micro) {
      resident = no_shard && (input.accumulation == Accumulation::full || op.micro == 0);
    }
    if (op.kind == ScheduleOpKind::all_gather) gathered[unit] = 1;
    if (op.kind == ScheduleOpKind::release) gathered[unit] = 0;
    if (op.kind == ScheduleOpKind::backward && !resident && units[unit].gradient_bytes > 0) computing[unit] = 1;
    if (reduces) outstanding.push_back({op.unit, op.micro, std::exchange(computing[unit], 0)});
    if (op.kind == ScheduleOpKind::wait_reduce) {
      const auto covered = std::find_if(outstanding.begin(), outstanding.end(), [&](const auto& each) {
        return each.unit == op.unit && each.micro == op.micro;
      });
      outstanding.erase(outstanding.begin(), covered + 1);
    }
    int parameters = 0, gradients = 0;
    std::size_t bytes = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      parameters += gathered[u];
      gradients += computing[u];
      bytes += (gathered[u] != 0 ? units[u].parameter_bytes : 0) + (computing[u] != 0 ? units[u].gradient_bytes : 0);
    }
    for (const Reduction& each : outstanding) {
      gradients += each.counted;
      if (each.counted != 0) bytes += units[static_cast<std::size_t>(each.unit)].gradient_bytes;
    }
    bound.parameter_sets = std::max(bound.parameter_sets, parameters);
    bound.gradient_sets = std::max(bound.gradient_sets, gradients);
    bound.communication_bytes = std::max(bound.communication_bytes, bytes);
  }
  return bound;
}

void expect_same(const ScheduleBound& bound, const ScheduleBound& expected) {
  EXPECT_EQ(bound.parameter_sets, expected.parameter_sets);
  EXPECT_EQ(bound.gradient_sets, expected.gradient_sets);
  EXPECT_EQ(bound.communication_bytes, expected.communication_bytes);
}

TEST(Bound, NothingKept_IsTheFormulaOfTheContract) {
  for (int units = 1; units <= 9; ++units) {
    for (int ahead = 0; ahead <= 3; ++ahead) {
      for (int accumulate = 1; accumulate <= 3; ++accumulate) {
        for (const auto backward : {BackwardPrefetch::none, BackwardPrefetch::pre, BackwardPrefetch::post}) {
          PlanInput input = equal_units(units);
          input.micro_batches = accumulate;
          const auto policy = prefetch_policy(backward, {.forward_prefetch = ahead});
          const ScheduleBound bound = policy->plan(input).bound();
          const int in_backward = backward == BackwardPrefetch::pre ? 2 : 1;
          EXPECT_EQ(bound.parameter_sets, std::min(units, std::max(ahead + 1, in_backward)))
              << describe(input, *policy);
          EXPECT_EQ(bound.gradient_sets, units * accumulate) << describe(input, *policy);
        }
      }
    }
  }
}

TEST(Bound, ReductionLimit_BoundsTheGradientSets) {
  for (int limit = 1; limit <= 4; ++limit) {
    for (int units = 2; units <= 6; ++units) {
      PlanInput input = equal_units(units);
      input.micro_batches = 2;
      const Schedule schedule = backward_pre({.limit_reduce_scatters = limit})->plan(input);
      EXPECT_EQ(schedule.bound().gradient_sets, std::min(limit, 2 * units));
    }
  }
}

TEST(Bound, SmallSchedule_CountsBytesByHand) {
  PlanInput input = equal_units(3, 100);
  EXPECT_EQ(backward_pre({.limit_reduce_scatters = 2})->plan(input).bound().communication_bytes, 400U);
  EXPECT_EQ(backward_post({.limit_reduce_scatters = 2})->plan(input).bound().communication_bytes, 300U);
  EXPECT_EQ(backward_post({.limit_reduce_scatters = 1})->plan(input).bound().communication_bytes, 200U);
  // Without a limit all three gradients are live at the last visit.
  EXPECT_EQ(backward_post()->plan(input).bound().communication_bytes, 400U);
  input.micro_batches = 2;  // And six with those of both micro-batches.
  EXPECT_EQ(backward_post()->plan(input).bound().communication_bytes, 700U);
}

TEST(Bound, KeptUnits_StayUntilTheirBackwardRelease) {
  PrefetchOptions options;
  options.keep = Keep::all;
  EXPECT_EQ(backward_pre(options)->plan(equal_units(5)).bound().parameter_sets, 5);
  EXPECT_EQ(backward_pre(options)->plan(tied_units(5)).bound().parameter_sets, 5);
  options.keep = Keep::last;
  EXPECT_EQ(backward_post(options)->plan(equal_units(5)).bound().parameter_sets, 1);
}

TEST(Bound, RevisitedUnit_HoldsItsGradientUntilItsLastVisit) {
  // The tied unit's gradient lives through the whole backward beside one limited reduction.
  const Schedule schedule = backward_post({.limit_reduce_scatters = 1})->plan(tied_units(4));
  EXPECT_EQ(schedule.bound().gradient_sets, 2);
  EXPECT_EQ(schedule.bound().parameter_sets, 1);
}

void expect_none(const PlanInput& input) {
  const Schedule schedule = backward_pre({.limit_all_gathers = 2, .limit_reduce_scatters = 2})->plan(input);
  expect_same(schedule.bound(), {});
  EXPECT_EQ(pack_slots(schedule, 512).high_water_bytes, 0U);
  EXPECT_TRUE(pack_slots(schedule, 512).slots.empty());
}

TEST(Bound, WorldOfOne_IsZero) {
  PlanInput input = tied_units(4);
  input.world = 1;
  for (const int accumulate : {1, 2}) {
    input.micro_batches = accumulate;
    for (const ShardStrategy strategy : kStrategies) {
      input.strategy = strategy;
      for (const auto accumulation : {Accumulation::sharded, Accumulation::full}) {
        input.accumulation = accumulation;
        expect_none(input);
      }
    }
  }
}

TEST(Bound, NoShard_CountsTheGradientsOfLaterMicroBatchesOnly) {
  PlanInput input = tied_units(5);
  input.strategy = ShardStrategy::no_shard;
  expect_none(input);  // One micro-batch: parameters and gradients are resident.
  input.micro_batches = 3;
  const ScheduleBound bound = backward_pre({.limit_reduce_scatters = 1})->plan(input).bound();
  expect_same(bound, {0, 2, 2 * 64 * kMiB});  // The tied unit's beside one that is reduced.
  expect_same(backward_pre()->plan(input).bound(), {0, 10, 10 * 64 * kMiB});
  input.accumulation = Accumulation::full;
  expect_none(input);
}

TEST(Bound, FullAccumulation_HoldsEveryGradientWhateverTheLimit) {
  for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::hybrid}) {
    PlanInput input = equal_units(5);
    input.strategy = strategy;
    input.accumulation = Accumulation::full;
    input.micro_batches = 2;
    // The next micro-batch's first two gathered sets meet the gradients of all.
    expect_same(backward_pre({.limit_reduce_scatters = 1})->plan(input).bound(), {2, 5, 7 * 64 * kMiB});
    freeze(input, 0b00110);
    expect_same(backward_pre({.limit_reduce_scatters = 1})->plan(input).bound(), {2, 3, 5 * 64 * kMiB});
    input.micro_batches = 1;
    expect_same(backward_pre({.limit_reduce_scatters = 1})->plan(input).bound(), {2, 1, 3 * 64 * kMiB});
  }
}

TEST(Bound, ShardGradOp_HoldsEveryParameterSet) {
  PlanInput input = equal_units(5);
  input.strategy = ShardStrategy::shard_grad_op;
  input.micro_batches = 2;
  // All sets, and the first gradient; each later one comes once a set is gone.
  expect_same(backward_post({.limit_reduce_scatters = 1})->plan(input).bound(), {5, 1, 6 * 64 * kMiB});
}

TEST(Bound, FrozenUnit_HasNoGradient) {
  PlanInput input = tied_units(4);
  freeze(input, 0b1111);
  const Schedule schedule = backward_pre({.limit_reduce_scatters = 1})->plan(input);
  expect_same(schedule.bound(), {2, 0, 2 * 64 * kMiB});
  for (const auto& slot : pack_slots(schedule, 512).slots) EXPECT_EQ(slot.use, SlotPlan::Slot::Use::parameters);
}

TEST(Bound, SeededSizesAndOptions_EqualsTheCountFromTheText) {
  std::mt19937 random(77);
  for (int draw = 0; draw < 1500; ++draw) {
    SCOPED_TRACE("draw " + std::to_string(draw) + " of seed 77");
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
    PlanInput input = below(2) == 0 ? equal_units(2 + below(8)) : tied_units(2 + below(8));
    draw_sizes(input, static_cast<std::uint32_t>(draw));
    draw_strategy(input, random);
    PrefetchOptions options{.forward_prefetch = below(4)};
    if (const int limit = below(4); limit > 0) options.limit_reduce_scatters = limit;
    options.keep = static_cast<Keep>(below(3));
    const Schedule schedule = prefetch_policy(static_cast<BackwardPrefetch>(below(3)), options)->plan(input);
    expect_same(schedule.bound(), count_from_text(schedule));
    if (HasFailure()) return;
  }
}

TEST(Bound, ReleaseMovedLater_IsFound) {
  for (const auto backward : {BackwardPrefetch::none, BackwardPrefetch::pre, BackwardPrefetch::post}) {
    const Schedule planned =
        prefetch_policy(backward, {.forward_prefetch = 1, .limit_reduce_scatters = 2})->plan(equal_units(4));
    const Schedule late = moved(planned, line_of(planned, "release 1.f"), line_of(planned, "forward 2"));
    ASSERT_TRUE(is_valid(late));
    EXPECT_EQ(late.bound().parameter_sets, planned.bound().parameter_sets + 1);
    EXPECT_NE(late.hash(), planned.hash());
  }
}

TEST(Bound, GatherMovedEarlier_IsFound) {
  const Schedule post = backward_post({.limit_reduce_scatters = 1})->plan(equal_units(4));
  const Schedule early = moved(post, line_of(post, "all_gather 1.b"), line_of(post, "backward 2"));
  ASSERT_TRUE(is_valid(early));
  EXPECT_EQ(post.bound().parameter_sets, 1);
  EXPECT_EQ(early.bound().parameter_sets, 2);
  EXPECT_GT(early.bound().communication_bytes, post.bound().communication_bytes);
  EXPECT_GT(pack_slots(early, 512).high_water_bytes, pack_slots(post, 512).high_water_bytes);
}

}  // namespace
}  // namespace headroom::testing
