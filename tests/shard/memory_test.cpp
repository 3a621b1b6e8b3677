#include <headroom/parameters.hpp>
#include <headroom/timeline.hpp>

#include <gtest/gtest.h>

#include <numeric>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::ToyModel;

constexpr auto kUnitBytes = [](int world, std::int64_t width) {
  const FlatLayout layout = FlatLayout::make("u", {{"weight", {width, width}, {}}, {"bias", {width}, {}}}, world);
  return static_cast<std::size_t>(layout.padded_numel) * sizeof(float);
};

TEST(StepMemory, PersistentBytes_AreAnExactShareOfTheModel) {
  for (const int world : {1, 2, 4}) {
    run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, {.units = 3, .width = 128});
      model.params.prepare();
      const TagBytes bytes = model.memory.statistics().tag_bytes;
      const std::size_t shard = 3 * kUnitBytes(world, 128) / static_cast<std::size_t>(world);
      const auto rounded = (shard / 3 + 511) / 512 * 512 * 3;
      EXPECT_EQ(bytes[static_cast<std::size_t>(Tag::parameter_shard)], rounded);
      EXPECT_EQ(bytes[static_cast<std::size_t>(Tag::gradient_shard)], rounded);
      EXPECT_EQ(bytes[static_cast<std::size_t>(Tag::optimizer_state)], 2 * rounded);
      model.params.finish();
    });
  }
}

TEST(StepMemory, CommunicationRegion_IsWithinAPageOfTheBound) {
  for (const auto& policy : {backward_pre({.forward_prefetch = 1, .limit_reduce_scatters = 2}),
                             backward_post({.limit_reduce_scatters = 2}), prefetch_policy(BackwardPrefetch::none)}) {
    run_ranks(2, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, {.units = 6, .width = 512, .policy = policy});
      model.step();
      model.step();
      model.params.finish();
      const MemoryStatistics statistics = model.memory.statistics();
      const RegionStatistics& region = statistics.regions[static_cast<std::size_t>(Region::communication)];
      const std::size_t bound = model.params.schedule().bound().communication_bytes;
      EXPECT_EQ(region.allocated_bytes.peak, bound) << policy->describe();
      EXPECT_LE(region.reserved_bytes.peak, std::max(bound + bound * 3 / 100, bound + (std::size_t{2} << 20)));
      EXPECT_EQ(statistics.host_waits, 0U);
    });
  }
}

TEST(StepMemory, EveryEventOfARun_CategoriesSumToAllocatedAndNothingLeaks) {
  for (const int world : {1, 2, 3}) {
    run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, {.micro_batches = 2, .tied = true});
      model.params.prepare();
      const std::size_t resting = model.memory.statistics().allocated_bytes.current;
      for (int i = 0; i < 3; ++i) {
        model.step();
        EXPECT_EQ(model.memory.statistics().allocated_bytes.current, resting) << "after step " << i + 1;
      }
      model.params.finish();
      model.memory.check();
      const MemoryPeak peak = model.memory.peak();
      std::size_t own = 0;
      for (const LiveBlock& block : peak.blocks) {
        own += block.shared ? 0 : block.bytes;
      }
      EXPECT_EQ(own, peak.allocated_bytes);
      EXPECT_EQ(peak.allocated_bytes, model.memory.statistics().allocated_bytes.peak);
    });
  }
}

TEST(StepMemory, EveryEventOfARun_FoldsToTheStatistics) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [&](Job& job) {
    ToyModel model(job, {.micro_batches = 2, .tied = true});
    for (int i = 0; i < 3; ++i) {
      model.step();
    }
    model.params.finish();
    Timeline timeline;
    std::size_t folded = 0;
    for (const AllocatorEvent& event : model.memory.events()) {
      const MemoryInstant& now = timeline.apply(event);
      const TagBytes& tags = now.statistics.tag_bytes;
      EXPECT_EQ(std::accumulate(tags.begin(), tags.end(), std::size_t{0}), now.allocated_bytes());
      ++folded;
    }
    EXPECT_GT(folded, 300U);
    const MemoryStatistics statistics = model.memory.statistics();
    EXPECT_EQ(timeline.now().statistics.tag_bytes, statistics.tag_bytes);
    EXPECT_EQ(timeline.now().allocated_bytes(), statistics.allocated_bytes.current);
    EXPECT_EQ(timeline.now().statistics.allocated_bytes.peak, statistics.allocated_bytes.peak);
  });
}

TEST(StepMemory, NothingKept_NoSetIsEverRetained) {
  run_ranks(2, {}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyModel model(job, {.tied = true});
    model.step();
    model.params.finish();
    Timeline timeline;
    for (const AllocatorEvent& event : model.memory.events()) {
      EXPECT_EQ(timeline.apply(event).bytes(Tag::parameter_full_retained), 0U) << "event " << event.number;
    }
  });
}

/// The whole difference between the two, as buffers: what lies beside a unit's gradient while it is computed.
TEST(StepMemory, PreHoldsNextBesideCurrentAndGradient_PostDoesNot) {
  for (const bool pre : {true, false}) {
    run_ranks(2, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyModel model(job, {.units = 4,
                           .policy = pre ? backward_pre({.limit_reduce_scatters = 2})
                                         : backward_post({.limit_reduce_scatters = 2})});
      model.step();
      model.step();
      model.params.finish();
      int gradients = 0;
      Timeline timeline;
      for (const AllocatorEvent& event : model.memory.events()) {
        const MemoryInstant& now = timeline.apply(event);
        if (event.kind != AllocatorEvent::Kind::alloc || event.tag != Tag::gradient_full_computing) {
          continue;
        }
        ++gradients;
        EXPECT_EQ(now.bytes(Tag::parameter_full_current), (kUnitBytes(2, 24) + 511) / 512 * 512);
        EXPECT_EQ(now.bytes(Tag::parameter_full_next), pre && event.unit != 0 ? event.bytes : 0U);
      }
      EXPECT_EQ(gradients, 8);
      EXPECT_EQ(model.params.parameter_sets_peak(), pre ? 2 : 1);
    });
  }
}

}  // namespace
}  // namespace headroom
