// The recorded settings give the recorded run; other settings give another; the models of PyTorch's policies do as
// their rules say.
#include "replay/replay.hpp"
#include "replay/policy.hpp"
#include "run/recorded_runs.hpp"
#include "run/small_runs.hpp"

#include "memory/random_program.hpp"

#include <gtest/gtest.h>

#include <string>

namespace headroom::bench {
namespace {

std::string difference(const Recording& recording) {
  const ExactReplay exact = replay_exactly(replay_source(recording));
  if (!exact.difference) return "none";
  return std::to_string(exact.difference->event) + ": expected " + exact.difference->expected + "\nfound " +
         exact.difference->found;
}

TEST(Replay, RealRuns_AreRepeatedExactly) {
  for (const std::vector<Setting>& more :
       {std::vector<Setting>{{"ranks", "2"}}, std::vector<Setting>{{"ranks", "2"}, {"buffers", "observed"}},
        std::vector<Setting>{{"recompute", "unit"}}, std::vector<Setting>{{"ranks", "2"}, {"executor", "seeded"}}}) {
    const Recording recording = record_run(small_config(more));
    EXPECT_EQ(difference(recording), "none") << more.front().value << ' ' << more.back().value;
  }
}

Recording random_recording(unsigned seed) {
  test::ProgramOptions options;
  options.seed = seed;
  options.operations = 3000;
  options.streams = seed % 4 == 0 ? 9 : 2 + seed % 3;
  options.limit_pages = seed % 2 == 0 ? 100 : 400;
  options.slot_pages = options.streams > 4 ? 0 : 16;
  options.event_capacity = std::size_t{1} << 18;
  Recording recording;
  test::RandomProgram program(options);
  program.run();
  EventTaker(recording).finish(program.memory());
  return recording;
}

TEST(Replay, RandomProgramsUnderTightLimits_AreRepeatedExactly) {
  std::uint64_t refusals = 0, waits = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const Recording recording = random_recording(seed);
    EXPECT_EQ(difference(recording), "none");
    for (const AllocatorEvent& event : recording.events) {
      refusals += event.kind == AllocatorEvent::Kind::out_of_memory ? 1 : 0;
      waits += event.kind == AllocatorEvent::Kind::host_wait ? 1 : 0;
    }
  }
  EXPECT_GT(refusals, 10U);
  EXPECT_GT(waits, 10U);
}

TEST(Replay, ChangedRecording_DiffersAtTheChange) {
  Recording recording = random_recording(3);
  const auto is_viewed = [&](std::uint64_t allocation) {
    return std::ranges::any_of(recording.events, [&](const AllocatorEvent& event) {
      return event.kind == AllocatorEvent::Kind::view && event.allocation == allocation;
    });
  };
  const auto is_plain = [&](const AllocatorEvent& event) {
    return event.kind == AllocatorEvent::Kind::alloc && event.number > 500 && event.bytes > 0 && !event.is_slot() &&
           !is_viewed(event.allocation);
  };
  const auto changed = std::ranges::find_if(recording.events, is_plain);
  ASSERT_NE(changed, recording.events.end());
  changed->address += 512;
  const ExactReplay exact = replay_exactly(replay_source(recording));
  ASSERT_TRUE(exact.difference);
  EXPECT_EQ(exact.difference->event, changed->number);
  changed->address -= 512;
  recording.statistics.front().second += 1;
  EXPECT_NE(difference(recording).find(recording.statistics.front().first), std::string::npos);
}

TEST(Replay, TighterLimit_CountsRefusalsAndHoldsIt) {
  const Recording recording = record_run(make_config({{"executor", "none"}, {"steps", "3"}}));
  const std::size_t limit = 500 * kMebi;  // it needs 567 MiB
  const ReplaySource source = replay_source(recording);
  const ReplayFigures whole = replay(source, ReplayPolicy::ours, {.repeats = 1});
  EXPECT_EQ(whole.refused, 0U);
  for (const ReplayPolicy policy : {ReplayPolicy::ours, ReplayPolicy::native, ReplayPolicy::expandable}) {
    const ReplayFigures tight = replay(source, policy, {.limit_bytes = limit, .repeats = 1});
    EXPECT_GT(tight.refused, 0U) << name_of(policy);
    EXPECT_TRUE(tight.first_refused);
    EXPECT_LE(tight.reserved_peak, limit) << name_of(policy);
  }
  const ReplayFigures wide = replay(source, ReplayPolicy::ours, {.limit_bytes = std::size_t{1} << 34, .repeats = 1});
  EXPECT_EQ(wide.refused, 0U);
  EXPECT_EQ(wide.reserved_peak, whole.reserved_peak);
}

TEST(NativePolicy, Segments_AreOfThreeSizesAndOfOneStream) {
  const std::unique_ptr<Policy> policy = make_native_policy(std::size_t{1} << 40);
  ASSERT_TRUE(policy->allocate(0, 1, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 2 * kMebi);
  ASSERT_TRUE(policy->allocate(1, kMebi, 0, Tag::other));  // 1 MiB is small, and fits
  EXPECT_EQ(policy->reserved_bytes(), 2 * kMebi);
  ASSERT_TRUE(policy->allocate(2, kMebi + 1, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 22 * kMebi);
  ASSERT_TRUE(policy->allocate(3, 11 * kMebi, 0, Tag::other));  // from what is left of 20
  EXPECT_EQ(policy->reserved_bytes(), 22 * kMebi);
  ASSERT_TRUE(policy->allocate(4, 11 * kMebi, 0, Tag::other));  // 12 of its own, as 11 rounds up
  EXPECT_EQ(policy->reserved_bytes(), 34 * kMebi);
  policy->free(3);
  ASSERT_TRUE(policy->allocate(3, 11 * kMebi, 1, Tag::other));  // no reuse across streams
  EXPECT_EQ(policy->reserved_bytes(), 46 * kMebi);
  EXPECT_EQ(policy->segments(), 4U);
}

TEST(NativePolicy, LargeBlocks_KeepARemainderOfAMebibyte) {
  const std::unique_ptr<Policy> policy = make_native_policy(std::size_t{1} << 40);
  ASSERT_TRUE(policy->allocate(0, 19 * kMebi, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 20 * kMebi);
  std::size_t free_bytes = 0;
  policy->visit_free([&](std::size_t bytes) { free_bytes += bytes; });
  EXPECT_EQ(free_bytes, 0U);
  policy->free(0);
  ASSERT_TRUE(policy->allocate(0, 18 * kMebi, 0, Tag::other));
  policy->visit_free([&](std::size_t bytes) { free_bytes += bytes; });
  EXPECT_EQ(free_bytes, 2 * kMebi);
}

TEST(NativePolicy, FreedNeighbours_Join) {
  const std::unique_ptr<Policy> policy = make_native_policy(20 * kMebi);
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(policy->allocate(i, 6 * kMebi, 0, Tag::other));
  EXPECT_FALSE(policy->allocate(3, 6 * kMebi, 0, Tag::other));
  for (const std::uint32_t i : {0U, 2U, 1U}) policy->free(i);
  ASSERT_TRUE(policy->allocate(0, 20 * kMebi, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 20 * kMebi);
}

TEST(ExpandablePolicy, Segment_GrowsInPagesBehindItsFreeEnd) {
  const std::unique_ptr<Policy> policy = make_expandable_policy(std::size_t{1} << 40);
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(policy->allocate(i, 16 * kMebi, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 140 * kMebi);  // PyTorch's developers name this figure
  for (std::uint32_t i = 0; i < 8; ++i) policy->free(i);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(policy->allocate(i, 32 * kMebi, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 140 * kMebi);
  EXPECT_EQ(policy->segments(), 1U);
  ASSERT_TRUE(policy->allocate(4, 512, 0, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 142 * kMebi);
}

TEST(ExpandablePolicy, FreeEnds_GoBackAtTheLimitOnly) {
  const std::unique_ptr<Policy> policy = make_expandable_policy(60 * kMebi);
  ASSERT_TRUE(policy->allocate(0, 40 * kMebi, 0, Tag::other));
  policy->free(0);
  EXPECT_EQ(policy->reserved_bytes(), 40 * kMebi);
  ASSERT_TRUE(policy->allocate(1, 40 * kMebi, 1, Tag::other));
  EXPECT_EQ(policy->reserved_bytes(), 40 * kMebi);
}

}  // namespace
}  // namespace headroom::bench
