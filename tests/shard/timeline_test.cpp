#include <headroom/buffer_spans.hpp>
#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::ToyModel;
using Kind = AllocatorEvent::Kind;
using Rows = std::vector<std::string>;

bool is_full(Tag tag) { return tag >= Tag::parameter_full_gathering && tag <= Tag::gradient_full_retained; }

/// "alloc p2 gathering -> 1 0 0 | 0 0": the event, then sets in each state: gathering, next, current | computing,
/// reducing. All units of a toy are equal.
std::string row(const AllocatorEvent& event, const MemoryInstant& now, std::size_t set, std::size_t gradient) {
  const std::string tag = name_of(event.tag);
  const char* const verb = event.kind == Kind::alloc ? "alloc " : event.kind == Kind::retag ? "retag " : "free ";
  std::string text = verb + std::string(1, tag[0]) + std::to_string(event.unit);
  if (event.kind != Kind::free_requested) text += " " + tag.substr(tag.find('.') + 1);
  text += " ->";
  const auto sets = [&now, &text](Tag of, std::size_t each) {
    text += " " + (now.bytes(of) % each == 0 ? std::to_string(now.bytes(of) / each) : "a part of a set");
  };
  sets(Tag::parameter_full_gathering, set);
  sets(Tag::parameter_full_next, set);
  sets(Tag::parameter_full_current, set);
  text += " |";
  sets(Tag::gradient_full_computing, gradient);
  sets(Tag::gradient_full_reducing, gradient);
  EXPECT_EQ(now.bytes(Tag::parameter_full_retained), 0U) << text;
  EXPECT_EQ(now.bytes(Tag::gradient_full_awaiting_reduce), 0U) << text;
  return text;
}

/// What the second step of three equal units does to full parameters and gradients, event by event.
Rows second_step(Job& job, const std::shared_ptr<const SchedulePolicy>& policy) {
  ToyModel model(job, {.units = 3, .policy = policy});
  model.step();
  model.step();
  model.params.finish();
  const FlatLayout layout = FlatLayout::make("u", {{"weight", {24, 24}, {}}, {"bias", {24}, {}}}, 2);
  const auto rounded = [](std::int64_t numel) {
    return (static_cast<std::size_t>(numel) * sizeof(float) + 511) / 512 * 512;
  };
  Rows rows;
  Timeline timeline;
  for (const AllocatorEvent& event : model.memory.events()) {
    const MemoryInstant& now = timeline.apply(event);
    const bool is_shown = event.kind == Kind::alloc || event.kind == Kind::retag || event.kind == Kind::free_requested;
    if (now.step == 2 && is_shown && is_full(event.tag)) {
      rows.push_back(row(event, now, rounded(layout.padded_numel), rounded(layout.trainable.padded_numel)));
    }
  }
  return rows;
}

// Without prefetch in forward, and without a limit of reductions: all gradients are given back at the step's end.
const Rows kForward{
    "alloc p0 gathering -> 1 0 0 | 0 0", "retag p0 current -> 0 0 1 | 0 0", "free p0 -> 0 0 0 | 0 0",
    "alloc p1 gathering -> 1 0 0 | 0 0", "retag p1 current -> 0 0 1 | 0 0", "free p1 -> 0 0 0 | 0 0",
    "alloc p2 gathering -> 1 0 0 | 0 0", "retag p2 current -> 0 0 1 | 0 0", "free p2 -> 0 0 0 | 0 0",
};
const Rows kEnd{"free g2 -> 0 0 0 | 0 2", "free g1 -> 0 0 0 | 0 1", "free g0 -> 0 0 0 | 0 0"};

const Rows kBackwardNone{
    "alloc p2 gathering -> 1 0 0 | 0 0", "retag p2 current -> 0 0 1 | 0 0",
    "alloc g2 computing -> 0 0 1 | 1 0", "free p2 -> 0 0 0 | 1 0",
    "retag g2 reducing -> 0 0 0 | 0 1",  //
    "alloc p1 gathering -> 1 0 0 | 0 1", "retag p1 current -> 0 0 1 | 0 1",
    "alloc g1 computing -> 0 0 1 | 1 1", "free p1 -> 0 0 0 | 1 1",
    "retag g1 reducing -> 0 0 0 | 0 2",  //
    "alloc p0 gathering -> 1 0 0 | 0 2", "retag p0 current -> 0 0 1 | 0 2",
    "alloc g0 computing -> 0 0 1 | 1 2", "free p0 -> 0 0 0 | 1 2",
    "retag g0 reducing -> 0 0 0 | 0 3",
};

// The next set is gathered before the gradient's computation: current, next and gradient stand together.
const Rows kBackwardPre{
    "alloc p2 gathering -> 1 0 0 | 0 0",
    "alloc p1 next -> 1 1 0 | 0 0",
    "retag p2 current -> 0 1 1 | 0 0",
    "alloc g2 computing -> 0 1 1 | 1 0",
    "free p2 -> 0 1 0 | 1 0",
    "retag g2 reducing -> 0 1 0 | 0 1",  //
    "alloc p0 next -> 0 2 0 | 0 1",
    "retag p1 current -> 0 1 1 | 0 1",
    "alloc g1 computing -> 0 1 1 | 1 1",
    "free p1 -> 0 1 0 | 1 1",
    "retag g1 reducing -> 0 1 0 | 0 2",  //
    "retag p0 current -> 0 0 1 | 0 2",
    "alloc g0 computing -> 0 0 1 | 1 2",
    "free p0 -> 0 0 0 | 1 2",
    "retag g0 reducing -> 0 0 0 | 0 3",
};

// The next set takes the place of the one before it: it never stands beside it.
const Rows kBackwardPost{
    "alloc p2 gathering -> 1 0 0 | 0 0",
    "retag p2 current -> 0 0 1 | 0 0",
    "alloc g2 computing -> 0 0 1 | 1 0",
    "free p2 -> 0 0 0 | 1 0",
    "alloc p1 next -> 0 1 0 | 1 0",
    "retag g2 reducing -> 0 1 0 | 0 1",  //
    "retag p1 current -> 0 0 1 | 0 1",
    "alloc g1 computing -> 0 0 1 | 1 1",
    "free p1 -> 0 0 0 | 1 1",
    "alloc p0 next -> 0 1 0 | 1 1",
    "retag g1 reducing -> 0 1 0 | 0 2",  //
    "retag p0 current -> 0 0 1 | 0 2",
    "alloc g0 computing -> 0 0 1 | 1 2",
    "free p0 -> 0 0 0 | 1 2",
    "retag g0 reducing -> 0 0 0 | 0 3",
};

struct HandComputed {
  const char* name;
  std::shared_ptr<const SchedulePolicy> policy;
  const Rows* backward;
};

TEST(StepTimeline, ThreeUnits_MatchTheHandComputedTimelineEventByEvent) {
  const std::array<HandComputed, 3> cases{{{"none", prefetch_policy(BackwardPrefetch::none), &kBackwardNone},
                                           {"pre", backward_pre({}), &kBackwardPre},
                                           {"post", backward_post({}), &kBackwardPost}}};
  for (const HostOptions host : {HostOptions{}, HostOptions{.executor = Executor::seeded, .seed = 3}}) {
    for (const HandComputed& hand : cases) {
      SCOPED_TRACE(hand.name);
      Rows expected = kForward;
      expected.insert(expected.end(), hand.backward->begin(), hand.backward->end());
      expected.insert(expected.end(), kEnd.begin(), kEnd.end());
      const auto found = test::on_ranks<Rows>(2, host, [&](Job& job) { return second_step(job, hand.policy); });
      EXPECT_EQ(found[0], expected);
      EXPECT_EQ(found[1], expected);
    }
  }
}

/// One rank's log and trace, and its peak.
struct Recorded {
  std::vector<AllocatorEvent> events;
  std::vector<std::string> names;
  std::vector<OperationRecord> operations;
  MemoryPeak peak;
};

Recorded record(Job& job, const test::ToyOptions& options) {
  ToyModel model(job, options);
  model.step();
  model.step();
  model.params.finish();
  return {model.memory.events(), model.memory.names(), job.device().trace().operations(), model.memory.peak()};
}

TEST(StepTimeline, DeviceClock_HoldsNoMoreSetsThanTheScheduleAndSumsAtEveryInstant) {
  for (const bool pre : {true, false}) {
    const auto policy = pre ? backward_pre({.limit_reduce_scatters = 2}) : backward_post({.limit_reduce_scatters = 2});
    const auto ranks =
        test::on_ranks<Recorded>(2, {}, [&](Job& job) { return record(job, {.units = 5, .policy = policy}); });
    for (const Recorded& rank : ranks) {
      const std::vector<BufferSpan> spans = device_spans({}, rank.events, rank.operations);
      std::size_t set = 0;
      std::array<bool, kTagCount> seen{};
      for (const BufferSpan& span : spans) {
        EXPECT_LT(span.begin_ns, span.end_ns);
        seen[static_cast<std::size_t>(span.tag)] = true;
        if (span.tag == Tag::parameter_full_current) set = span.bytes;
      }
      ASSERT_GT(set, 0U);
      EXPECT_TRUE(seen[static_cast<std::size_t>(Tag::parameter_full_gathering)]);
      EXPECT_TRUE(seen[static_cast<std::size_t>(Tag::gradient_full_reducing)]);
      EXPECT_FALSE(seen[static_cast<std::size_t>(Tag::parameter_full_releasing)]);
      for (const SpanInstant& instant : instants(spans)) {
        std::size_t sets = 0;
        for (int tag = 1; tag <= 5; ++tag) sets += instant.tag_bytes[static_cast<std::size_t>(tag)];
        EXPECT_LE(sets, set * (pre ? 2 : 1));
        EXPECT_LE(instant.tag_bytes[static_cast<std::size_t>(Tag::parameter_full_current)], set);
        EXPECT_EQ(std::accumulate(instant.tag_bytes.begin(), instant.tag_bytes.end(), std::size_t{0}),
                  instant.live_bytes);
      }
    }
  }
}

struct StorageCase {
  const char* name;
  ShardStrategy strategy;
  int world, shard_ranks;
  ShardStorage storage;
};

/// Decided from the layout, confirmed by what was measured: at the peak, on both clocks, and in bytes.
TEST(StepTimeline, ShardAndFullSet_ShareStorageWhereverTheirLifetimesAllow) {
  constexpr std::array kCases{
      StorageCase{"full_shard", ShardStrategy::full_shard, 1, 0, ShardStorage::shared},
      StorageCase{"shard_grad_op", ShardStrategy::shard_grad_op, 1, 0, ShardStorage::shared},
      StorageCase{"no_shard", ShardStrategy::no_shard, 1, 1, ShardStorage::shared},
      StorageCase{"full_shard", ShardStrategy::full_shard, 2, 0, ShardStorage::separate},
      StorageCase{"shard_grad_op", ShardStrategy::shard_grad_op, 2, 0, ShardStorage::separate},
      StorageCase{"no_shard", ShardStrategy::no_shard, 2, 1, ShardStorage::shared},
      StorageCase{"hybrid", ShardStrategy::hybrid, 4, 2, ShardStorage::separate},
  };
  for (const StorageCase& each : kCases) {
    SCOPED_TRACE(testing::Message() << each.name << " in a world of " << each.world);
    test::ToyOptions options{.units = 3};
    options.parameters.strategy = each.strategy;
    options.groups.shard_ranks = each.shard_ranks;
    const auto ranks = test::on_ranks<Recorded>(each.world, {}, [&](Job& job) { return record(job, options); });
    const bool shared = each.storage == ShardStorage::shared;
    for (const std::vector<BufferSpan>& spans :
         {issue_spans({}, ranks[0].events), device_spans({}, ranks[0].events, ranks[0].operations)}) {
      const std::vector<UnitLifetimes> units = unit_lifetimes(spans);
      ASSERT_EQ(units.size(), 3U);
      for (const UnitLifetimes& unit : units) {
        EXPECT_EQ(unit.storage, each.storage);
        EXPECT_EQ(unit.sets.empty(), shared);
        EXPECT_EQ(unit.longest_overlap_ns > 0, !shared);
        EXPECT_EQ(unit.overlap_byte_seconds > 0, !shared);
      }
    }
    int shares = 0;
    for (const LiveBlock& block : ranks[0].peak.blocks) {
      shares += block.shared && block.tag == Tag::parameter_shard ? 1 : 0;
      EXPECT_TRUE(!shared || !is_full(block.tag) || block.tag >= Tag::gradient_full_computing) << block.name;
    }
    EXPECT_EQ(shares, shared ? 3 : 0);
  }
}

}  // namespace
}  // namespace headroom
