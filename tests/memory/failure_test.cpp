#include <gtest/gtest.h>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "headroom/timeline.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

/// A program that grows, frees, uses slots and returns pages; each refusal must leave the state as it was, and the
/// request must be served once the device gives memory again.
std::size_t run(std::size_t fail_from, std::size_t fail_count) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 24 * kPage});
  const detail::AllocatorState& state = detail::AllocatorState::of(memory);
  const Stream one(fake.device), two(fake.device);
  fake.backend->fail_commit_from = fail_from;
  fake.backend->fail_commit_count = fail_count;
  std::vector<Buffer> live;
  const auto attempt = [&](auto&& call) {
    const std::uint64_t before = state.hash();
    const std::size_t allocated = memory.statistics().allocated_bytes.current;
    try {
      call();
    } catch (const OutOfMemory& error) {
      // A device that refuses for good also refuses what was returned to it: then less is mapped, but as much is live.
      if (fail_count == 1) {
        EXPECT_EQ(state.hash(), before) << error.what();
      }
      EXPECT_EQ(memory.statistics().allocated_bytes.current, allocated);
      memory.check();
      const std::size_t resume = std::exchange(fake.backend->fail_commit_from, SIZE_MAX);
      call();
      fake.backend->fail_commit_from = resume;
    }
    memory.check();
  };
  const auto allocate = [&](std::size_t pages, Region region, const Stream& stream) {
    attempt([&] { live.push_back(memory.allocate(request(pages * kPage, Category::other, "x", region), stream)); });
  };
  allocate(2, Region::residents, one);
  allocate(6, Region::transients, one);
  attempt([&] { memory.commit_slots(3 * kPage); });
  live[1].record_use(two);
  live[1].reset();
  allocate(8, Region::communication, two);
  live[2].reset();
  allocate(5, Region::transients, two);
  live[3].reset();
  allocate(15, Region::transients, one);
  live.back().reset();
  attempt([&] { memory.commit_slots(4 * kPage); });
  attempt([&] { memory.commit_slots(kPage); });
  Timeline timeline;
  for (const AllocatorEvent& event : memory.events()) timeline.apply(event);
  const std::size_t commits = fake.backend->commits;
  live.clear();
  memory.check();
  return commits;
}

TEST(CommitFailure, EachCommitInTurn_LeavesTheStateAndServesTheNextRequest) {
  const std::size_t commits = run(SIZE_MAX, 0);
  ASSERT_GE(commits, 5U);
  for (std::size_t k = 0; k < commits; ++k) {
    SCOPED_TRACE(k);
    run(k, 1);
    run(k, SIZE_MAX);
  }
}

TEST(CommitFailure, BelowTheLimit_IsNamedInTheRefusal) {
  FakeDevice fake(8 * kPage);
  CachingAllocator memory(fake.device, {.limit_bytes = std::size_t{1} << 40U});
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(4 * kPage), stream);
  fake.backend->fail_commit_from = 0;
  EXPECT_THROW(static_cast<void>(memory.allocate(request(2 * kPage), stream)), OutOfMemory);
  EXPECT_NE(memory.last_refusal().find("the device has no more memory"), std::string::npos) << memory.last_refusal();
  EXPECT_THROW(static_cast<void>(memory.allocate(request(9 * kPage), stream)), OutOfMemory);
  EXPECT_NE(memory.last_refusal().find("that can be mapped"), std::string::npos) << memory.last_refusal();
}

TEST(CommitFailure, WhereTheLimitEndsWithinAPage_NamesThePagesThatItLeaves) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 3 * kPage + kPage / 2});
  const Stream stream(fake.device);
  const Buffer live = memory.allocate(request(2 * kPage), stream);
  EXPECT_THROW(static_cast<void>(memory.allocate(request(kPage + 512), stream)), OutOfMemory);
  EXPECT_NE(memory.last_refusal().find("of which the limit leaves room for 1."), std::string::npos)
      << memory.last_refusal();
  EXPECT_THROW(static_cast<void>(memory.allocate(request(2 * kPage), stream)), OutOfMemory);
  EXPECT_NE(memory.last_refusal().find("live bytes and the request exceed the limit"), std::string::npos)
      << memory.last_refusal();
}

TEST(CommitFailure, AfterPagesWereReturned_TakesThemBack) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 8 * kPage});
  const Stream stream(fake.device);
  memory.allocate(request(6 * kPage, Category::other, "gone", Region::residents), stream).reset();
  const std::uint64_t before = detail::AllocatorState::of(memory).hash();
  fake.backend->fail_commit_from = fake.backend->commits;
  fake.backend->fail_commit_count = 1;
  EXPECT_THROW(static_cast<void>(memory.allocate(request(5 * kPage), stream)), OutOfMemory);
  EXPECT_EQ(detail::AllocatorState::of(memory).hash(), before);
  EXPECT_EQ(memory.statistics().num_device_free, 1U) << "the rung was reached";
  memory.check();
  EXPECT_TRUE(memory.try_allocate(request(5 * kPage), stream).has_value());
}

TEST(CommitFailure, WhereReturnedPagesDidNotHelp_TakesThemBackOnce) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  memory.allocate(request(6 * kPage, Category::other, "gone", Region::residents), stream).reset();
  const std::uint64_t before = detail::AllocatorState::of(memory).hash();
  for (const bool must : {true, false}) {
    fake.backend->fail_commit_from = fake.backend->commits;
    fake.backend->fail_commit_count = 2;
    if (must) {
      EXPECT_THROW(static_cast<void>(memory.allocate(request(4 * kPage), stream)), OutOfMemory);
    } else {
      EXPECT_FALSE(memory.try_allocate(request(4 * kPage), stream).has_value());
    }
    EXPECT_EQ(detail::AllocatorState::of(memory).hash(), before);
    EXPECT_EQ(memory.statistics().reserved_bytes.current, 6 * kPage);
    memory.check();
  }
}

TEST(CommitFailure, DeviceFull_OtherRegionsPagesStillServe) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  memory.allocate(request(6 * kPage, Category::other, "gone", Region::residents), stream).reset();
  fake.backend->fail_commit_from = fake.backend->commits;
  fake.backend->fail_commit_count = 1;
  const Buffer a = memory.allocate(request(4 * kPage), stream);
  EXPECT_EQ(memory.statistics().regions[0].reserved_bytes.current, 2 * kPage);
  memory.check();
}

TEST(CommitFailure, Construction_WhereTheLimitIsBelowAPage_RefusesEveryRequestByThePage) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage - 1});
  const Stream stream(fake.device);
  const std::string bound =
      "memory is taken in whole pages of " + std::to_string(kPage) + " bytes, of which the limit leaves room for 0";
  EXPECT_FALSE(memory.try_allocate(request(1), stream).has_value());
  EXPECT_NE(memory.last_refusal().find(bound), std::string::npos) << memory.last_refusal();
  EXPECT_THROW(memory.commit_slots(1), OutOfMemory);
  EXPECT_TRUE(memory.try_allocate(request(0), stream).has_value());
  memory.check();
}

}  // namespace
}  // namespace headroom::test
