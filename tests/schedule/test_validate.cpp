#include <gtest/gtest.h>

#include "schedule/device_order.hpp"
#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

void add_strategies(std::vector<Schedule>& schedules, PlanInput input) {
  for (const ShardStrategy strategy : kStrategies) {
    for (const auto accumulation : {Accumulation::sharded, Accumulation::full}) {
      input.strategy = strategy;
      input.accumulation = accumulation;
      schedules.push_back(backward_pre({.forward_prefetch = 1, .limit_reduce_scatters = 1})->plan(input));
    }
  }
}

std::vector<Schedule> samples() {
  PrefetchOptions options{.forward_prefetch = 1, .limit_all_gathers = 2, .limit_reduce_scatters = 2};
  options.keep = PrefetchOptions::Keep::last;
  std::vector<Schedule> schedules;
  for (PlanInput input : {equal_units(4), tied_units(4)}) {
    for (const auto backward : {BackwardPrefetch::none, BackwardPrefetch::pre, BackwardPrefetch::post}) {
      for (const int accumulate : {1, 2}) {
        input.micro_batches = accumulate;
        schedules.push_back(prefetch_policy(backward, options)->plan(input));
        schedules.push_back(prefetch_policy(backward)->plan(input));
      }
    }
    freeze(input, 0b0100);
    add_strategies(schedules, input);
  }
  return schedules;
}

std::string error_of(const Schedule& schedule) {
  try {
    schedule.validate();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

Schedule without(const Schedule& schedule, std::size_t line) {
  std::vector<ScheduleOp> ops = schedule.ops();
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(line));
  return {ops, schedule.input()};
}

TEST(Validate, PlannedSchedules_AreAcceptedAndRunOnTheDevice) {
  for (const Schedule& schedule : samples()) {
    EXPECT_EQ(error_of(schedule), "") << schedule.text();
    EXPECT_EQ(DeviceOrder(schedule).fault(), "") << schedule.text();
  }
}

// A throttle, a wait that a later one covers and the wait of a set that is already there may go; nothing else.
TEST(Validate, AnyLineDeleted_IsRefusedUnlessItWasSpare) {
  for (const Schedule& schedule : samples()) {
    for (std::size_t line = 0; line < schedule.ops().size(); ++line) {
      const ScheduleOp& op = schedule.ops()[line];
      const Schedule broken = without(schedule, line);
      const bool final_wait = line + 4 == schedule.ops().size();
      bool spare = op.kind == ScheduleOpKind::throttle || (op.kind == ScheduleOpKind::wait_reduce && !final_wait);
      if (op.kind == ScheduleOpKind::wait_gather) spare = DeviceOrder(broken).fault().empty();
      EXPECT_EQ(is_valid(broken), spare) << "without '" << to_text(op, schedule.input()) << "' of\n" << schedule.text();
    }
  }
}

TEST(Validate, AnyLineDuplicated_IsRefused) {
  for (const Schedule& schedule : samples()) {
    for (std::size_t line = 0; line < schedule.ops().size(); ++line) {
      std::vector<ScheduleOp> ops = schedule.ops();
      ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(line), ops[line]);
      EXPECT_FALSE(is_valid({ops, schedule.input()})) << "twice '" << to_text(ops[line], schedule.input()) << "' in\n"
                                                      << schedule.text();
    }
  }
}

TEST(Validate, AnyLineMovedAnywhere_IsRefusedWhereTheDeviceWouldErr) {
  int refused = 0, accepted = 0;
  const std::vector<Schedule> all = samples();
  for (std::size_t sample = 0; sample < all.size(); sample += 3) {  // A third of them has every kind of line.
    const Schedule& schedule = all[sample];
    for (std::size_t from = 0; from < schedule.ops().size(); ++from) {
      for (std::size_t to = 0; to < schedule.ops().size(); ++to) {
        const Schedule other = moved(schedule, from, to);
        if (!is_valid(other)) {
          ++refused;
          continue;
        }
        ++accepted;
        ASSERT_EQ(DeviceOrder(other).fault(), "")
            << "'" << to_text(schedule.ops()[from], schedule.input()) << "' moved to\n"
            << other.text();
      }
    }
  }
  EXPECT_GT(refused, accepted);  // Most moves break something; both happen.
  EXPECT_GT(accepted, 500);
}

TEST(Validate, BrokenText_NamesTheLineAndTheReason) {
  const Schedule pre = backward_pre()->plan(equal_units(3));
  const auto without_line = [&](const std::string& line) { return error_of(without(pre, line_of(pre, line))); };
  EXPECT_EQ(without_line("all_gather 1.b"), "schedule line 19 'wait_gather 1.b': it is not gathered");
  EXPECT_EQ(without_line("wait_gather 1.f"),
            "schedule line 7 'forward 1': its parameters have not been gathered and waited for");
  EXPECT_EQ(without_line("release 0.f"), "schedule line 20 'all_gather 0.b': it is still gathered");
  EXPECT_EQ(without_line("release 0.b"), "schedule line 29 'norm': the parameters of 0 are not released");
  EXPECT_EQ(without_line("reduce_scatter 1"), "schedule line 29 'norm': the gradient of 1 is not reduced");
  EXPECT_EQ(without_line("wait_reduce 0"), "schedule line 29 'norm': a reduction has not been waited for");
  EXPECT_EQ(without_line("backward 2"), "schedule line 17 'release 2.b': it has not been used since it was gathered");
  EXPECT_EQ(without_line("apply"), "schedule: the text ends before 'apply'");
}

ScheduleOp reduction(ScheduleOpKind kind, int unit, int micro = 0) {
  return {.kind = kind, .unit = unit, .micro = micro};
}

Schedule with(const Schedule& schedule, const ScheduleOp& op, std::size_t line) {
  std::vector<ScheduleOp> ops = schedule.ops();
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(line), op);
  return {ops, schedule.input()};
}

PlanInput three_units(ShardStrategy strategy, Accumulation accumulation, int micro_batches) {
  PlanInput input = equal_units(3);
  input.strategy = strategy;
  input.accumulation = accumulation;
  input.micro_batches = micro_batches;
  return input;
}

constexpr auto kReduceScatter = ScheduleOpKind::reduce_scatter, kAllReduce = ScheduleOpKind::all_reduce;

TEST(Validate, FullAccumulationReducedEarlyTwiceOrNever_IsRefused) {
  const Schedule full = backward_post()->plan(three_units(ShardStrategy::full_shard, Accumulation::full, 2));
  EXPECT_EQ(error_of(with(full, reduction(kReduceScatter, 2), line_of(full, "release 2.b"))),
            "schedule line 17 'reduce_scatter 2': full accumulation reduces in the last micro-batch only");
  EXPECT_EQ(error_of(without(full, line_of(full, "reduce_scatter 2"))),
            "schedule line 54 'norm': the gradient of 2 is not reduced");
  const std::size_t reduced = line_of(full, "reduce_scatter 2");
  EXPECT_EQ(error_of(with(full, reduction(kReduceScatter, 2, 1), reduced + 1)),
            "schedule line 45 'reduce_scatter 2': it has been reduced in this micro-batch");
  EXPECT_EQ(error_of(with(full, reduction(kReduceScatter, 1, 0), reduced)),
            "schedule line 44 'reduce_scatter 1': it is of another micro-batch");
  // The same text is not one of sharded accumulation, which reduces in each micro-batch; nor the other way round.
  PlanInput input = full.input();
  input.accumulation = Accumulation::sharded;
  EXPECT_EQ(error_of({full.ops(), input}), "schedule line 26 'micro 1': the gradient of 0 is not reduced");
  EXPECT_NE(error_of({backward_post()->plan(input).ops(), full.input()}).find("in the last micro-batch only"),
            std::string::npos);
}

TEST(Validate, HybridAllReduceMissingMisplacedOrTooMany_IsRefused) {
  const Schedule hybrid = backward_post()->plan(three_units(ShardStrategy::hybrid, Accumulation::sharded, 2));
  const std::size_t line = line_of(hybrid, "all_reduce 2");
  const std::string at = "schedule line " + std::to_string(line + 1);
  EXPECT_EQ(error_of(without(hybrid, line)),
            at + " 'wait_gather 1.b': the all_reduce of the reduce_scatter before it is missing");
  EXPECT_EQ(error_of(with(hybrid, reduction(kAllReduce, 1, 1), line)),
            at + " 'all_reduce 1': it does not follow the unit's reduce_scatter");
  EXPECT_NE(error_of(with(hybrid, reduction(kAllReduce, 2, 1), line)).find("does not follow"), std::string::npos);
  EXPECT_NE(error_of(with(hybrid, reduction(kAllReduce, 2, 0), line)).find("of another micro-batch"),
            std::string::npos);
  const std::size_t early = line_of(hybrid, "reduce_scatter 2") + 1;
  EXPECT_NE(error_of(with(hybrid, reduction(kAllReduce, 2), early))
                .find("'all_reduce 2': hybrid all-reduces in the last micro-batch only"),
            std::string::npos);
  PlanInput input = hybrid.input();
  input.strategy = ShardStrategy::full_shard;
  EXPECT_EQ(error_of({hybrid.ops(), input}),
            at + " 'all_reduce 2': a sharded unit's gradient is reduced by reduce_scatter");
}

TEST(Validate, NoShardThatCommunicatesParametersOrScatters_IsRefused) {
  const Schedule text = backward_pre()->plan(three_units(ShardStrategy::no_shard, Accumulation::sharded, 1));
  for (const auto kind :
       {ScheduleOpKind::throttle, ScheduleOpKind::all_gather, ScheduleOpKind::wait_gather, ScheduleOpKind::release}) {
    const std::string error = error_of(with(text, {.kind = kind, .unit = 0}, 1));
    EXPECT_EQ(error.find("schedule line 2 '"), 0U) << error;
    EXPECT_NE(error.find("0.f': no_shard gathers and releases nothing"), std::string::npos) << error;
  }
  const std::size_t line = line_of(text, "all_reduce 2");
  EXPECT_EQ(error_of(with(text, reduction(kReduceScatter, 2), line)),
            "schedule line 6 'reduce_scatter 2': with no_shard a gradient is reduced by all_reduce");
  EXPECT_EQ(error_of(with(text, reduction(kAllReduce, 1), line)),
            "schedule line 6 'all_reduce 1': it has no gradient yet");
  EXPECT_EQ(error_of(without(text, line)), "schedule line 11 'norm': the gradient of 2 is not reduced");
}

TEST(Validate, FrozenUnitReduced_IsRefused) {
  for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::no_shard}) {
    PlanInput input = three_units(strategy, Accumulation::sharded, 1);
    const Schedule trainable = backward_pre()->plan(input);
    freeze(input, 0b100);
    const std::string error = error_of({trainable.ops(), input});
    EXPECT_NE(error.find("reduce"), std::string::npos) << error;
    EXPECT_NE(error.find(" 2': the unit is frozen, it has no gradient"), std::string::npos) << error;
    // And one that is not frozen must be reduced.
    const Schedule frozen = backward_pre()->plan(input);
    EXPECT_NE(error_of({frozen.ops(), trainable.input()}).find("the gradient of 2 is not reduced"), std::string::npos);
  }
}

TEST(Validate, OpsOutsideTheStep_AreRefused) {
  const Schedule pre = backward_pre()->plan(equal_units(3));
  const auto error_with = [&](const ScheduleOp& op, std::size_t line) { return error_of(with(pre, op, line)); };
  ScheduleOp throttle{ScheduleOpKind::throttle, 0, Phase::backward, 0, 0, 0};
  EXPECT_NE(error_with(throttle, 1).find("the release has not been issued"), std::string::npos);
  throttle.steps_back = 1;
  EXPECT_EQ(error_with(throttle, 1), "");
  throttle.repeat = 1;
  EXPECT_NE(error_with(throttle, 1).find("there is no such release"), std::string::npos);
  EXPECT_NE(error_with({.kind = ScheduleOpKind::all_reduce, .unit = 0}, 26).find("reduce_scatter"), std::string::npos);
  EXPECT_NE(
      error_with({.kind = ScheduleOpKind::micro, .micro = 1}, pre.ops().size() - 3).find("expected micro-batch 1 of 1"),
      std::string::npos);
  EXPECT_NE(error_with({.kind = ScheduleOpKind::forward, .unit = 7}, 1).find("names unit 7"), std::string::npos);
  EXPECT_NE(error_with({.kind = ScheduleOpKind::forward, .unit = 0}, 0).find("before the first micro-batch"),
            std::string::npos);
}

TEST(Validate, FirstStepWithThrottleOfTheStepBefore_IsRefused) {
  PlanInput input = equal_units(3);
  const Schedule steady = backward_pre({.limit_all_gathers = 2})->plan(input);
  input.first_step = true;
  EXPECT_NE(error_of({steady.ops(), input}).find("a first step has no step before it"), std::string::npos);
}

TEST(Validate, WorldOfOneWithCommunication_IsRefused) {
  PlanInput input = equal_units(3);
  const Schedule two = backward_pre()->plan(input);
  input.world = 1;
  EXPECT_NE(error_of({two.ops(), input}).find("world 1 gathers and reduces nothing"), std::string::npos);
}

}  // namespace
}  // namespace headroom::testing
