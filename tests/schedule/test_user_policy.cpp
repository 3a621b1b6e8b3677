#include <gtest/gtest.h>

#include "schedule/device_order.hpp"
#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

/// A user's own: gathers two visits ahead in backward, and keeps the largest unit from forward to backward. For paths
/// that visit each unit once.
class TwoAheadKeepLargest final : public SchedulePolicy {
 public:
  [[nodiscard]] Schedule plan(const PlanInput& input) const override {
    if (input.strategy == ShardStrategy::no_shard) return {all_resident(input), input};
    const auto largest = static_cast<int>(
        std::max_element(input.units.begin(), input.units.end(),
                         [](const auto& a, const auto& b) { return a.parameter_bytes < b.parameter_bytes; }) -
        input.units.begin());
    std::vector<ScheduleOp> ops;
    const auto visit = [&](ScheduleOpKind kind, int unit, Phase phase) { ops.push_back({kind, unit, phase, 0, 0, 0}); };
    const auto unit = [&](ScheduleOpKind kind, int u) { ops.push_back({kind, u, Phase::forward, 0, 0, 0}); };
    ops.push_back({});
    for (const int u : input.forward) {
      visit(ScheduleOpKind::all_gather, u, Phase::forward);
      visit(ScheduleOpKind::wait_gather, u, Phase::forward);
      unit(ScheduleOpKind::forward, u);
      if (u != largest) visit(ScheduleOpKind::release, u, Phase::forward);
    }
    std::size_t gathered = 0;
    for (std::size_t i = 0; i < input.backward.size(); ++i) {
      const int u = input.backward[i];
      for (; gathered < input.backward.size() && gathered <= i + 2; ++gathered) {
        if (input.backward[gathered] != largest) {
          visit(ScheduleOpKind::all_gather, input.backward[gathered], Phase::backward);
        }
      }
      if (u != largest) visit(ScheduleOpKind::wait_gather, u, Phase::backward);
      unit(ScheduleOpKind::backward, u);
      visit(ScheduleOpKind::release, u, Phase::backward);
      unit(ScheduleOpKind::reduce_scatter, u);
      if (input.strategy == ShardStrategy::hybrid) unit(ScheduleOpKind::all_reduce, u);
      unit(ScheduleOpKind::wait_reduce, u);
    }
    for (const auto kind : {ScheduleOpKind::norm, ScheduleOpKind::vote, ScheduleOpKind::apply}) {
      ops.push_back({.kind = kind});
    }
    return {std::move(ops), input};
  }

  [[nodiscard]] std::string describe() const override { return "two ahead, keeping the largest"; }

 private:
  static std::vector<ScheduleOp> all_resident(const PlanInput& input) {
    using Kind = ScheduleOpKind;
    std::vector<ScheduleOp> ops = {{}};
    for (const int u : input.forward) ops.push_back({.kind = Kind::forward, .unit = u});
    for (const int u : input.backward) ops.push_back({.kind = Kind::backward, .unit = u});
    for (const int u : input.backward) ops.push_back({.kind = Kind::all_reduce, .unit = u});
    ops.push_back({.kind = Kind::wait_reduce, .unit = input.backward.back()});
    for (const auto kind : {Kind::norm, Kind::vote, Kind::apply}) ops.push_back({.kind = kind});
    return ops;
  }
};

TEST(UserPolicy, TwoAheadKeepLargest_IsProvedBoundedAndPacked) {
  PlanInput input = equal_units(6);
  input.units[1].parameter_bytes *= 3;
  const std::shared_ptr<const SchedulePolicy> policy = std::make_shared<TwoAheadKeepLargest>();
  const Schedule schedule = policy->plan(input);
  ASSERT_NO_THROW(schedule.validate());
  EXPECT_EQ(DeviceOrder(schedule).fault(), "");
  const ScheduleBound bound = schedule.bound();
  EXPECT_EQ(bound.parameter_sets, 4);  // Three in the window, and the kept one.
  EXPECT_EQ(bound.gradient_sets, 1);
  EXPECT_EQ(bound.communication_bytes, (3 + 3 + 1) * 64 * kMiB);
  const SlotPlan slots = pack_slots(schedule, 512);
  EXPECT_EQ(slots.slots.size(), 6U + 5U + 6U);
  EXPECT_EQ(slots.high_water_bytes, bound.communication_bytes);
  EXPECT_NE(schedule.hash(), backward_pre()->plan(input).hash());
}

TEST(UserPolicy, StrategyOfTheInput_IsSeenByIt) {
  const std::shared_ptr<const SchedulePolicy> policy = std::make_shared<TwoAheadKeepLargest>();
  std::vector<Schedule> schedules;
  for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::hybrid, ShardStrategy::no_shard}) {
    PlanInput input = equal_units(6);
    input.strategy = strategy;
    schedules.push_back(policy->plan(input));
    ASSERT_NO_THROW(schedules.back().validate());
    EXPECT_EQ(DeviceOrder(schedules.back()).fault(), "");
  }
  EXPECT_EQ(schedules[1].ops().size(), schedules[0].ops().size() + 6);
  EXPECT_EQ(schedules[1].bound().communication_bytes, schedules[0].bound().communication_bytes);
  EXPECT_EQ(schedules[2].bound().communication_bytes, 0U);
  // A text of one strategy is not one of another.
  EXPECT_FALSE(is_valid({schedules[0].ops(), schedules[1].input()}));
  EXPECT_FALSE(is_valid({schedules[0].ops(), schedules[2].input()}));
}

TEST(UserPolicy, ForgottenRelease_IsRefused) {
  const Schedule schedule = TwoAheadKeepLargest().plan(equal_units(3));
  std::vector<ScheduleOp> ops = schedule.ops();
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(line_of(schedule, "release 2.b")));
  EXPECT_FALSE(is_valid({ops, schedule.input()}));
}

}  // namespace
}  // namespace headroom::testing
