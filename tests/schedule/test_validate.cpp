#include <gtest/gtest.h>

#include "schedule/device_order.hpp"
#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

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

TEST(Validate, OpsOutsideTheStep_AreRefused) {
  const Schedule pre = backward_pre()->plan(equal_units(3));
  const auto with = [&](const ScheduleOp& op, std::size_t line) {
    std::vector<ScheduleOp> ops = pre.ops();
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(line), op);
    return error_of({ops, pre.input()});
  };
  ScheduleOp throttle{ScheduleOpKind::throttle, 0, Phase::backward, 0, 0, 0};
  EXPECT_NE(with(throttle, 1).find("the release has not been issued"), std::string::npos);
  throttle.steps_back = 1;
  EXPECT_EQ(with(throttle, 1), "");
  throttle.repeat = 1;
  EXPECT_NE(with(throttle, 1).find("there is no such release"), std::string::npos);
  EXPECT_NE(with({.kind = ScheduleOpKind::all_reduce, .unit = 0}, 26).find("reduce_scatter"), std::string::npos);
  EXPECT_NE(with({.kind = ScheduleOpKind::micro, .micro = 1}, pre.ops().size() - 3).find("expected micro-batch 1 of 1"),
            std::string::npos);
  EXPECT_NE(with({.kind = ScheduleOpKind::forward, .unit = 7}, 1).find("names unit 7"), std::string::npos);
  EXPECT_NE(with({.kind = ScheduleOpKind::forward, .unit = 0}, 0).find("before the first micro-batch"),
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
