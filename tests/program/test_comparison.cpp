#include "io/outputs.hpp"
#include "options/option_table.hpp"
#include "report/comparison.hpp"
#include "report/limiter_json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace headroom::bench {
namespace {

Equivalence class_of(const Setting& a, const Setting& b) {
  return equivalence_of({a.key}, make_config({a}), make_config({b}));
}

// DESIGN section 5: what changes rounding, and nothing else.
TEST(Equivalence, EachKey_HasItsClass) {
  const std::vector<std::string> rounding{"wrap", "accumulation", "gathered", "reduced", "ranks", "host-threads"};
  const Config same = make_config({});
  for (const Option& option : option_table()) {
    if (std::string_view(option.key) == "shard") continue;
    const bool rounds = std::find(rounding.begin(), rounding.end(), option.key) != rounding.end();
    EXPECT_EQ(equivalence_of({option.key}, same, same), rounds ? Equivalence::tolerance : Equivalence::bitwise)
        << option.key;
  }
  EXPECT_EQ(equivalence_of({}, same, same), Equivalence::bitwise);
  EXPECT_EQ(equivalence_of({"buffers", "wrap"}, same, same), Equivalence::tolerance);
}

TEST(Equivalence, Strategies_AreBitwiseOnlyWhereShardsAreAlike) {
  const auto of = [](const char* a, const char* b) { return class_of({"shard", a}, {"shard", b}); };
  EXPECT_EQ(of("full_shard", "shard_grad_op"), Equivalence::bitwise);
  EXPECT_EQ(of("shard_grad_op", "full_shard"), Equivalence::bitwise);
  EXPECT_EQ(of("full_shard", "no_shard"), Equivalence::tolerance);
  EXPECT_EQ(of("hybrid(2)", "shard_grad_op"), Equivalence::tolerance);
  EXPECT_EQ(of("hybrid(2)", "hybrid(4)"), Equivalence::tolerance);
}

TEST(Equivalence, Bf16_IsHeldToOnePercent) {
  const Config f32 = make_config({}), gathered = make_config({{"gathered", "bf16"}}),
               reduced = make_config({{"reduced", "bf16"}});
  EXPECT_EQ(loss_tolerance_of(f32, f32), kLossTolerance);
  EXPECT_EQ(loss_tolerance_of(f32, gathered), kBf16LossTolerance);
  EXPECT_EQ(loss_tolerance_of(reduced, f32), kBf16LossTolerance);
  Outcome a, b;
  a.steps = {{.step = 1, .loss = 5.0}};
  b.steps = {{.step = 1, .loss = 5.04}};
  EXPECT_TRUE(first_difference(a, b, Equivalence::tolerance));
  EXPECT_FALSE(first_difference(a, b, Equivalence::tolerance, kBf16LossTolerance));
  EXPECT_TRUE(first_difference(a, b, Equivalence::bitwise, kBf16LossTolerance));
  b.steps[0].loss = 5.06;
  EXPECT_TRUE(first_difference(a, b, Equivalence::tolerance, kBf16LossTolerance));
}

Json limiter_of(const std::vector<Setting>& settings, int world = 4) {
  const std::vector<Json> ranks{{{"limiter", {{"waits", 3}, {"waited_seconds", 0.5}}}}};
  return limiter_json(make_config(settings), world, ranks);
}

bool mentions(const Json& list, const std::string& text) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& entry) { return entry.get<std::string>().find(text) != std::string::npos; });
}

TEST(Limiter, Active_OnlyWithObservedBuffersALimitAndGathers) {
  EXPECT_EQ(limiter_of({{"buffers", "observed"}}).at("active"), true);
  EXPECT_EQ(limiter_of({}).at("active"), false);
  EXPECT_EQ(limiter_of({{"buffers", "observed"}, {"limit-all-gathers", "off"}}).at("active"), false);
  EXPECT_EQ(limiter_of({{"buffers", "observed"}, {"shard", "no_shard"}}).at("active"), false);
  EXPECT_EQ(limiter_of({{"buffers", "observed"}}, 1).at("active"), false);
  EXPECT_EQ(limiter_of({{"buffers", "observed"}}).at("waits"), 3);
}

TEST(Limiter, WhatItBounds_IsNotInTheListOfWhatItDoesNot) {
  const Json active = limiter_of({{"buffers", "observed"}});
  EXPECT_TRUE(mentions(active.at("bounds"), "gathered parameters"));
  EXPECT_FALSE(mentions(active.at("does_not_bound"), "gathered parameters"));
  const Json off = limiter_of({{"buffers", "observed"}, {"limit-all-gathers", "off"}});
  EXPECT_FALSE(mentions(off.at("bounds"), "gathered parameters"));
  EXPECT_TRUE(mentions(off.at("does_not_bound"), "runs ahead"));
  const Json planned = limiter_of({});
  EXPECT_FALSE(mentions(planned.at("bounds"), "gathered parameters"));
  EXPECT_TRUE(mentions(planned.at("does_not_bound"), "the schedule's order is the bound"));
  const Json full = limiter_of({{"accumulation", "full"}, {"accumulate", "2"}, {"limit-reduce-scatters", "off"}});
  EXPECT_FALSE(mentions(full.at("bounds"), "gradients"));
  EXPECT_TRUE(mentions(full.at("does_not_bound"), "limit-reduce-scatters is off"));
  EXPECT_TRUE(mentions(full.at("does_not_bound"), "accumulation full"));
  EXPECT_TRUE(mentions(limiter_of({{"shard", "shard_grad_op"}}).at("does_not_bound"), "kept from forward"));
}

TEST(Outputs, OfAnArm_HaveItBeforeTheExtension) {
  EXPECT_EQ(with_arm("/x/trace.json", "a"), "/x/trace.a.json");
  EXPECT_EQ(with_arm("trace{rank}.json", "b"), "trace{rank}.b.json");
  EXPECT_EQ(with_arm("events", "b"), "events.b");
  EXPECT_EQ(with_arm("trace.json", ""), "trace.json");
  EXPECT_EQ(with_arm("", "a"), "");
}

}  // namespace
}  // namespace headroom::bench
