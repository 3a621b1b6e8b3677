#include <gtest/gtest.h>

#include "schedule/device_order.hpp"
#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

using Keep = PrefetchOptions::Keep;
using Slot = SlotPlan::Slot;

constexpr std::size_t kAlignment = 512, kPage = 2 * kMiB;

/// A line that sums the unit's gradient over ranks.
bool sums(const ScheduleOp& op) {
  return op.kind == ScheduleOpKind::reduce_scatter || op.kind == ScheduleOpKind::all_reduce;
}

/// The lines whose work touches the slot's bytes.
std::vector<std::size_t> uses_of(const Slot& slot, const Schedule& schedule) {
  const bool gradient = slot.use == Slot::Use::gradient;
  std::vector<std::size_t> uses;
  bool reduced = false;
  for (std::size_t line = slot.first_op; line < slot.last_op; ++line) {
    const ScheduleOp& op = schedule.ops()[line];
    if (op.unit != slot.unit) continue;
    if (reduced && op.kind != ScheduleOpKind::all_reduce) break;  // Later ones are the next micro-batch's.
    if (op.kind == ScheduleOpKind::backward || (gradient && sums(op)) ||
        (!gradient && (op.kind == ScheduleOpKind::forward || op.kind == ScheduleOpKind::all_gather))) {
      uses.push_back(line);
    }
    reduced = reduced || (gradient && sums(op));
  }
  return uses;
}

bool all_ordered(const std::vector<std::size_t>& earlier, std::size_t later, const DeviceOrder& order) {
  return std::all_of(earlier.begin(), earlier.end(), [&](std::size_t line) { return order.ordered(line, later); });
}

/// Every pair of slots that share bytes must be ordered by the text, on the device.
std::string unsafe_pair(const SlotPlan& plan, const Schedule& schedule) {
  const DeviceOrder order(schedule);
  std::vector<std::vector<std::size_t>> uses;
  for (const Slot& slot : plan.slots) uses.push_back(uses_of(slot, schedule));
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.slots.size(); ++j) {
      const Slot &a = plan.slots[i], &b = plan.slots[j];
      const bool share = a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes;
      if (share && !all_ordered(uses[i], uses[j].front(), order)) {
        return "lines " + std::to_string(a.first_op) + " and " + std::to_string(b.first_op);
      }
    }
  }
  return "";
}

/// One slot for each gather and each gradient, of the right size, from its line to the one that frees it.
void expect_complete(const SlotPlan& plan, const Schedule& schedule) {
  std::size_t next = 0;
  const PlanInput& input = schedule.input();
  const bool no_shard = input.strategy == ShardStrategy::no_shard;
  std::vector<char> has_gradient(input.units.size(), 0);
  for (std::size_t line = 0; line < schedule.ops().size(); ++line) {
    const ScheduleOp& op = schedule.ops()[line];
    if (op.unit < 0) continue;
    const ScheduleUnit& unit = input.units[static_cast<std::size_t>(op.unit)];
    const bool resident = no_shard && (op.micro == 0 || input.accumulation == Accumulation::full);
    char& gradient = has_gradient[static_cast<std::size_t>(op.unit)];
    std::optional<std::pair<Slot::Use, std::size_t>> expected;
    if (op.kind == ScheduleOpKind::all_gather) expected = {Slot::Use::parameters, unit.parameter_bytes};
    if (op.kind == ScheduleOpKind::backward && gradient == 0 && !resident && unit.gradient_bytes > 0) {
      expected = {Slot::Use::gradient, unit.gradient_bytes};
      gradient = 1;
    }
    if (sums(op)) gradient = 0;
    if (!expected) continue;
    ASSERT_LT(next, plan.slots.size());
    const Slot& slot = plan.slots[next++];
    EXPECT_EQ(slot.first_op, line);
    EXPECT_EQ(slot.unit, op.unit);
    EXPECT_EQ(slot.use, expected->first);
    EXPECT_EQ(slot.bytes, expected->second);
    EXPECT_EQ(slot.offset_bytes % kAlignment, 0U);
    EXPECT_LE(slot.offset_bytes + slot.bytes, plan.high_water_bytes);
    EXPECT_EQ(schedule.ops()[slot.last_op].kind,
              slot.use == Slot::Use::parameters ? ScheduleOpKind::release : ScheduleOpKind::wait_reduce);
  }
  EXPECT_EQ(next, plan.slots.size());
}

bool is_close(std::size_t high_water, std::size_t bound) {
  return high_water <= std::max(bound + bound * 3 / 100, bound + kPage);
}

template <typename Check>
void for_each_plan(const std::vector<int>& counts, Check check) {
  for (const auto backward : {BackwardPrefetch::none, BackwardPrefetch::pre, BackwardPrefetch::post}) {
    for (const int ahead : {0, 1, 3}) {
      for (const int reductions : {0, 1, 2, 3}) {
        for (const Keep keep : {Keep::none, Keep::last, Keep::all}) {
          for (const int accumulate : {1, 2, 3}) {
            for (const int units : counts) {
              for (PlanInput input : {equal_units(units), tied_units(units)}) {
                PrefetchOptions options{.forward_prefetch = ahead};
                if (reductions > 0) options.limit_reduce_scatters = reductions;
                options.keep = keep;
                input.micro_batches = accumulate;
                check(prefetch_policy(backward, options), input);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Slots, EqualUnits_AreSafeAndWithinThreePercentOfTheBound) {
  for_each_plan({2, 3, 5, 8}, [](const auto& policy, const PlanInput& input) {
    SCOPED_TRACE(describe(input, *policy));
    const Schedule schedule = policy->plan(input);
    const SlotPlan plan = pack_slots(schedule, kAlignment);
    expect_complete(plan, schedule);
    EXPECT_EQ(unsafe_pair(plan, schedule), "");
    EXPECT_GE(plan.high_water_bytes, schedule.bound().communication_bytes);
    EXPECT_TRUE(is_close(plan.high_water_bytes, schedule.bound().communication_bytes))
        << plan.high_water_bytes << " bytes for a bound of " << schedule.bound().communication_bytes;
  });
}

// A GPT's embedding is several times a block.
TEST(Slots, LargeEmbedding_IsWithinThreePercentOfTheBound) {
  for_each_plan({4, 9}, [](const auto& policy, PlanInput input) {
    SCOPED_TRACE(describe(input, *policy));
    ScheduleUnit& embedding = input.units.front();
    embedding.parameter_bytes *= 4;
    embedding.gradient_bytes *= 4;
    const Schedule schedule = policy->plan(input);
    const SlotPlan plan = pack_slots(schedule, kAlignment);
    EXPECT_EQ(unsafe_pair(plan, schedule), "");
    EXPECT_TRUE(is_close(plan.high_water_bytes, schedule.bound().communication_bytes))
        << plan.high_water_bytes << " bytes for a bound of " << schedule.bound().communication_bytes;
  });
}

// With sizes drawn from 1 to 64 MiB the largest live sum cannot always be reached: buffers that outlive each other in
// turn leave gaps that no order of placement fills. Nearly all are within 3 %, and the rest not far.
TEST(Slots, UnequalUnits_AreSafeAndNearlyAllWithinThreePercentOfTheBound) {
  std::mt19937 random(5);
  int close = 0;
  constexpr int kDraws = 150;
  for (int draw = 0; draw < kDraws; ++draw) {
    SCOPED_TRACE("draw " + std::to_string(draw) + " of seed 5");
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
    PlanInput input = below(2) == 0 ? equal_units(3 + below(14)) : tied_units(3 + below(14));
    input.world = 2 + below(3);
    draw_sizes(input, static_cast<std::uint32_t>(draw));
    if (draw % 3 == 0) {
      input.micro_batches = 1 + below(3);
    } else {
      draw_strategy(input, random);
    }
    PrefetchOptions options{.forward_prefetch = below(4)};
    if (const int limit = below(4); limit > 0) options.limit_reduce_scatters = limit;
    options.keep = static_cast<Keep>(below(3));
    const Schedule schedule = prefetch_policy(static_cast<BackwardPrefetch>(below(3)), options)->plan(input);
    const SlotPlan plan = pack_slots(schedule, kAlignment);
    expect_complete(plan, schedule);
    ASSERT_EQ(unsafe_pair(plan, schedule), "");
    const std::size_t bound = schedule.bound().communication_bytes;
    EXPECT_LE(plan.high_water_bytes, bound + bound * 15 / 100);
    if (is_close(plan.high_water_bytes, bound)) ++close;
  }
  EXPECT_GE(close, kDraws * 95 / 100);
}

TEST(Slots, SameSchedule_IsPackedAlike) {
  PlanInput input = tied_units(9);
  input.micro_batches = 3;
  draw_sizes(input, 4);
  const Schedule schedule = backward_pre({.forward_prefetch = 2, .limit_reduce_scatters = 3})->plan(input);
  const SlotPlan first = pack_slots(schedule, kAlignment), second = pack_slots(schedule, kAlignment);
  ASSERT_EQ(first.slots.size(), second.slots.size());
  for (std::size_t i = 0; i < first.slots.size(); ++i) {
    EXPECT_EQ(first.slots[i].offset_bytes, second.slots[i].offset_bytes);
  }
  EXPECT_EQ(first.high_water_bytes, second.high_water_bytes);
}

TEST(Slots, OddSizes_AreAligned) {
  PlanInput input = equal_units(4, 1001);
  input.units[2].gradient_bytes = 0;
  const Schedule schedule = backward_pre()->plan(input);
  const SlotPlan plan = pack_slots(schedule, 256);
  for (const Slot& slot : plan.slots) EXPECT_EQ(slot.offset_bytes % 256, 0U);
  EXPECT_EQ(plan.high_water_bytes % 256, 0U);
  EXPECT_EQ(unsafe_pair(plan, schedule), "");
  EXPECT_THROW((void)pack_slots(schedule, 0), InvalidInput);
  EXPECT_THROW((void)pack_slots(schedule, SIZE_MAX), InvalidInput);
}

// A plan made for one text is not safe for a text that releases later or gathers earlier.
TEST(Slots, ReleaseMovedLaterOrGatherMovedEarlier_BreaksThePlanOfTheOldText) {
  const Schedule post = backward_post({.limit_reduce_scatters = 1})->plan(equal_units(4));
  const SlotPlan plan = pack_slots(post, kAlignment);
  ASSERT_EQ(unsafe_pair(plan, post), "");
  const Schedule early = moved(post, line_of(post, "all_gather 1.b"), line_of(post, "release 2.b"));
  const Schedule late = moved(post, line_of(post, "release 2.b"), line_of(post, "all_gather 1.b"));
  for (const Schedule& other : {early, late}) {
    ASSERT_TRUE(is_valid(other));
    EXPECT_GT(pack_slots(other, kAlignment).high_water_bytes, plan.high_water_bytes);
    EXPECT_EQ(unsafe_pair(pack_slots(other, kAlignment), other), "");
  }
}

// The gather stream is ordered after a wait_reduce only through a release that follows it.
TEST(Slots, GatherBetweenWaitAndRelease_DoesNotTakeTheGradientsBytes) {
  const Schedule post = backward_post({.limit_reduce_scatters = 1})->plan(equal_units(4));
  const std::size_t gather = line_of(post, "all_gather 0.b");
  const Schedule early = moved(post, gather, line_of(post, "backward 1"));  // Behind "wait_reduce 2".
  ASSERT_EQ(to_text(early.ops()[line_of(early, "all_gather 0.b") - 1], early.input()), "wait_reduce 2");
  const SlotPlan plan = pack_slots(early, kAlignment);
  EXPECT_EQ(unsafe_pair(plan, early), "");
  // Live in the text's order: two parameter sets and one gradient; on the device the old gradient counts until then.
  EXPECT_EQ(early.bound().communication_bytes, 3 * 64 * kMiB);
  EXPECT_EQ(plan.high_water_bytes, 3 * 64 * kMiB);
}

TEST(Slots, FortyEightUnitsSixteenMicroBatches_ArePackedAtTheBound) {
  PlanInput input = tied_units(49);
  input.micro_batches = 16;
  input.units.front().parameter_bytes *= 3;
  const Schedule schedule = backward_pre({.forward_prefetch = 1, .limit_reduce_scatters = 2})->plan(input);
  EXPECT_TRUE(is_close(pack_slots(schedule, kAlignment).high_water_bytes, schedule.bound().communication_bytes));
}

}  // namespace
}  // namespace headroom::testing
