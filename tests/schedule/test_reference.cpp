#include <gtest/gtest.h>

#include "schedule/reference_generator.hpp"
#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

using Keep = PrefetchOptions::Keep;

std::vector<std::string> names_of(const PlanInput& input, const std::vector<int>& path) {
  std::vector<std::string> names;
  for (const int unit : path) names.push_back(input.units[static_cast<std::size_t>(unit)].name);
  return names;
}

/// CONTRACT: `last` is the last unit visited in forward that is visited once.
std::set<std::string> kept_names(const std::vector<std::string>& forward, Keep keep) {
  if (keep == Keep::none) return {};
  std::set<std::string> all(forward.begin(), forward.end());
  if (keep == Keep::all) return all;
  std::string last;
  for (const std::string& unit : forward) {
    if (std::count(forward.begin(), forward.end(), unit) == 1) last = unit;
  }
  return last.empty() ? std::set<std::string>{} : std::set<std::string>{last};
}

const char* word_of(BackwardPrefetch backward) {
  return backward == BackwardPrefetch::none ? "none" : backward == BackwardPrefetch::pre ? "pre" : "post";
}

/// Compares the text of the first step, and that of the steady step with the loop's once its steps repeat.
void compare(BackwardPrefetch backward, const PrefetchOptions& options, PlanInput input) {
  const std::vector<std::string> forward = names_of(input, input.forward);
  reference::Options same{.backward_prefetch = word_of(backward),
                          .forward_prefetch = options.forward_prefetch,
                          .gather_limit = options.limit_all_gathers.value_or(0),
                          .reduction_limit = options.limit_reduce_scatters.value_or(0),
                          .keep = kept_names(forward, options.keep),
                          .accumulate = input.micro_batches,
                          .single_rank = input.world == 1,
                          .strategy = name_of(input.strategy),
                          .full_accumulation = input.accumulation == Accumulation::full,
                          .frozen = {}};
  for (const ScheduleUnit& unit : input.units) {
    if (unit.gradient_bytes == 0) same.frozen.insert(unit.name);
  }
  reference::TrainingLoop loop(forward, names_of(input, input.backward), same);
  const auto policy = prefetch_policy(backward, options);
  input.first_step = true;
  const Schedule first = policy->plan(input);
  SCOPED_TRACE(describe(input, *policy));
  ASSERT_EQ(first.text(), loop.step());
  ASSERT_NO_THROW(first.validate());
  // With limit n, releases of at most n - 1 steps are outstanding.
  for (int warm_up = 0; warm_up < same.gather_limit; ++warm_up) (void)loop.step();
  input.first_step = false;
  const Schedule steady = policy->plan(input);
  ASSERT_EQ(steady.text(), loop.step());
  ASSERT_NO_THROW(steady.validate());
  ASSERT_EQ(steady.text(), loop.step()) << "the steps do not repeat";
}

/// The paths of one number of units: plain, tied, and both with frozen units.
std::vector<PlanInput> variants(int units) {
  std::vector<PlanInput> inputs = {equal_units(units), tied_units(units), equal_units(units), tied_units(units)};
  freeze(inputs[2], 0b10010);  // The second, and from five units on the fifth.
  freeze(inputs[3], 0b00101);  // The tied one and the third.
  return inputs;
}

struct Case {
  BackwardPrefetch backward;
  ShardStrategy strategy;
  Accumulation accumulation;
};

class ReferenceTexts : public ::testing::TestWithParam<Case> {
 protected:
  /// The default strategy is gone through over more units, visits ahead and limits than the others.
  static bool is_default() {
    return GetParam().strategy == ShardStrategy::full_shard && GetParam().accumulation == Accumulation::sharded;
  }
  static std::vector<std::optional<int>> limits() {
    std::vector<std::optional<int>> all{std::nullopt, 1, 2};
    if (is_default()) all.emplace_back(3);
    return all;
  }
  /// The gather limits and kept units to go through: no_shard gathers nothing, and shard_grad_op keeps all.
  static std::vector<std::optional<int>> gather_limits() {
    if (GetParam().strategy == ShardStrategy::no_shard) return {2};
    return limits();
  }
  static std::vector<Keep> keeps() {
    if (GetParam().strategy == ShardStrategy::no_shard) return {Keep::last};
    if (GetParam().strategy == ShardStrategy::shard_grad_op) return {Keep::none, Keep::last};
    return {Keep::none, Keep::last, Keep::all};
  }

  void compare_options(PlanInput input, int ahead) {
    input.strategy = GetParam().strategy;
    input.accumulation = GetParam().accumulation;
    // One micro-batch is the same in full and in sharded accumulation.
    const int fewest = input.accumulation == Accumulation::full ? 2 : 1;
    for (const auto gathers : gather_limits()) {
      for (const auto reductions : limits()) {
        for (const Keep keep : keeps()) {
          for (int accumulate = fewest; accumulate <= 3; ++accumulate) {
            input.micro_batches = accumulate;
            compare(GetParam().backward, {ahead, gathers, reductions, keep, {}}, input);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
};

TEST_P(ReferenceTexts, UnitsPrefetchLimitsKeepAccumulation_GivesTheSameTexts) {
  for (int units = 2; units <= (is_default() ? 9 : 6); ++units) {
    for (int ahead = 0; ahead <= (is_default() ? 3 : 2); ++ahead) {
      for (const PlanInput& input : variants(units)) {
        compare_options(input, ahead);
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto backward : {BackwardPrefetch::none, BackwardPrefetch::pre, BackwardPrefetch::post}) {
    for (const ShardStrategy strategy : kStrategies) {
      for (const auto accumulation : {Accumulation::sharded, Accumulation::full}) {
        cases.push_back({backward, strategy, accumulation});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceTexts, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return std::string(word_of(test.param.backward)) + "_" + name_of(test.param.strategy) +
         (test.param.accumulation == Accumulation::full ? "_full" : "_sharded");
});

TEST(Reference, SeededPathsAndOptions_GivesTheSameTexts) {
  std::mt19937 random(20240607);
  for (int draw = 0; draw < 3000; ++draw) {
    SCOPED_TRACE("draw " + std::to_string(draw) + " of seed 20240607");
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
    PlanInput input = equal_units(1 + below(5));
    input.forward.clear();
    for (int visits = 1 + below(8); visits > 0; --visits) {
      input.forward.push_back(below(static_cast<int>(input.units.size())));
    }
    input.backward.assign(input.forward.rbegin(), input.forward.rend());
    input.world = below(8) == 0 ? 1 : 2;
    draw_strategy(input, random);
    const auto limit = [&]() -> std::optional<int> {
      const int n = below(10);
      return n == 0 ? std::nullopt : std::optional<int>(n);
    };
    const auto gathers = limit();
    const auto reductions = limit();
    compare(static_cast<BackwardPrefetch>(below(3)), {below(5), gathers, reductions, static_cast<Keep>(below(3)), {}},
            input);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace headroom::testing
