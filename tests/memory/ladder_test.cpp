#include <gtest/gtest.h>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

std::string refusal(CachingAllocator& memory, const AllocationRequest& asked, StreamRef stream) {
  const std::uint64_t before = detail::AllocatorState::of(memory).hash();
  try {
    static_cast<void>(memory.allocate(asked, stream));
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.damage(), Damage::none);
    EXPECT_EQ(error.details().requested_bytes, asked.bytes);
    EXPECT_EQ(detail::AllocatorState::of(memory).hash(), before);
    memory.check();
    return error.what();
  }
  return "(not refused)";
}

TEST(Ladder, Ready_IsPreferredToGrowth) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  memory.allocate(request(3 * kPage), stream).reset();
  const Buffer a = memory.allocate(request(kPage), stream);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 3 * kPage);
  EXPECT_EQ(memory.statistics().num_device_alloc, 1U);
}

TEST(Ladder, Growth_UsesTheFreeEndOfTheRegion) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  const Buffer keep = memory.allocate(request(kPage), stream);
  memory.allocate(request(2 * kPage), stream).reset();
  const Buffer a = memory.allocate(request(5 * kPage), stream);
  EXPECT_EQ(a.data(), keep.data() + kPage);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 6 * kPage);
}

TEST(Ladder, EightSmallThenFourLarge_ReserveNoMoreThanTheSmall) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 8; ++i) buffers.push_back(memory.allocate(request(16 * kPage), stream));
  buffers.clear();
  for (int i = 0; i < 4; ++i) buffers.push_back(memory.allocate(request(32 * kPage), stream));
  EXPECT_EQ(memory.statistics().reserved_bytes.peak, 128 * kPage);
}

TEST(Ladder, Growth_IsPreferredToAStreamWait) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 2 * kPage});
  const Stream first(fake.device), second(fake.device);
  memory.allocate(request(kPage), first).reset();
  const Buffer a = memory.allocate(request(kPage), second);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 2 * kPage);
}

TEST(Ladder, StreamWait_WhereTheLimitForbidsGrowth_OrdersTheStream) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  const Stream first(fake.device), second(fake.device);
  memory.allocate(request(kPage), first).reset();
  const Ticket last = first.ref().issued();
  const Buffer a = memory.allocate(request(kPage), second);
  EXPECT_EQ(memory.statistics().waited_reuse, 1U);
  EXPECT_GE(second.ref().knows(first), last);
  EXPECT_EQ(memory.statistics().host_waits, 0U);
  EXPECT_EQ(memory.statistics().num_alloc_retries, 0U);
  memory.check();
}

TEST(Ladder, StreamWait_OnTheFreeEnd_JoinsItToGrowth) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 3 * kPage});
  const Stream first(fake.device), second(fake.device);
  memory.allocate(request(2 * kPage), first).reset();
  const Ticket last = first.ref().issued();
  const Buffer a = memory.allocate(request(3 * kPage), second);
  EXPECT_EQ(memory.statistics().waited_reuse, 1U);
  EXPECT_GE(second.ref().knows(first), last);
  memory.check();
}

TEST(Ladder, StreamWait_ForJustEnoughPendingNeighbours_MakesThemOne) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 6 * kPage});
  const Stream own(fake.device), user(fake.device);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(memory.allocate(request(kPage), own));
    buffers.back().record_use(user);
  }
  const std::byte* const base = buffers[0].data();
  for (Buffer& buffer : buffers) buffer.reset();
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, 6 * kPage);
  const Buffer a = memory.allocate(request(3 * kPage), own);
  EXPECT_EQ(a.data(), base);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.host_waits, 0U) << "the device can wait";
  EXPECT_EQ(s.num_alloc_retries, 0U);
  EXPECT_EQ(s.waited_reuse, 1U);
  EXPECT_EQ(s.pending_free_bytes.current, 3 * kPage);
  memory.check();
}

// pytorch#189504: the block that the wait made free must be found.
TEST(Ladder, StreamWait_IsFollowedByASearchOfThePool) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 100 * kPage});
  const Stream own(fake.device), user(fake.device);
  Buffer a = memory.allocate(request(40 * kPage), own), b = memory.allocate(request(40 * kPage), own);
  a.record_use(user);
  b.record_use(user);
  a.reset();
  b.reset();
  EXPECT_TRUE(memory.try_allocate(request(80 * kPage), own).has_value());
}

TEST(Ladder, ReturnedPages_OfAnotherRegion_MakeRoom) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 8 * kPage});
  const Stream stream(fake.device);
  const Buffer keep = memory.allocate(request(kPage, Category::other, "keep", Region::residents), stream);
  memory.allocate(request(5 * kPage, Category::other, "gone", Region::residents), stream).reset();
  const Buffer a = memory.allocate(request(4 * kPage), stream);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.num_device_free, 1U);
  EXPECT_EQ(s.regions[0].reserved_bytes.current, 4 * kPage) << "just enough";
  EXPECT_EQ(s.reserved_bytes.current, 8 * kPage);
  EXPECT_EQ(s.host_waits, 1U) << "pages may go only when the host has seen their last use";
  EXPECT_EQ(fake.backend->committed.size(), 8U);
  memory.check();
}

TEST(Ladder, ReturnedPages_PendingOnes_AreWaitedForFirst) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 8 * kPage});
  const Stream stream(fake.device), user(fake.device);
  Buffer gone = memory.allocate(request(6 * kPage, Category::other, "gone", Region::residents), stream);
  gone.record_use(user);
  gone.reset();
  const Buffer a = memory.allocate(request(8 * kPage), stream);
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, 0U);
  EXPECT_TRUE(fake.backend->complete(user.ref().id(), user.ref().issued()));
  EXPECT_EQ(memory.statistics().regions[0].reserved_bytes.current, 0U);
  memory.check();
}

TEST(Ladder, Refusal_LargerThanTheLimit_SaysSo) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(100, Category::optimizer_state, "m"), stream);
  for (const std::size_t bytes : {4 * kPage + 1, SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2}) {
    const std::string text = refusal(memory, request(bytes, Category::workspace, "huge"), stream);
    EXPECT_NE(text.find("'huge' (workspace)"), std::string::npos) << text;
    EXPECT_NE(text.find("alone exceeds the limit"), std::string::npos) << text;
    EXPECT_NE(text.find("optimizer_state 512 bytes"), std::string::npos) << text;
    EXPECT_EQ(memory.last_refusal(), text);
  }
  EXPECT_EQ(memory.statistics().num_ooms, 4U);
}

TEST(Ladder, Refusal_Fragmented_SaysSoAndWaitsForNothing) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 6 * kPage});
  const Stream stream(fake.device), user(fake.device);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 6; ++i) buffers.push_back(memory.allocate(request(kPage), stream));
  for (std::size_t i = 0; i < 6; i += 2) {
    buffers[i].record_use(user);
    buffers[i].reset();
  }
  const std::string text = refusal(memory, request(2 * kPage), stream);
  EXPECT_NE(text.find("fragmented, not full"), std::string::npos) << text;
  EXPECT_EQ(memory.statistics().host_waits, 0U) << "waiting would have been in vain";
  EXPECT_EQ(memory.statistics().num_alloc_retries, 0U);
  EXPECT_TRUE(memory.try_allocate(request(kPage), stream).has_value());
}

TEST(Ladder, Refusal_FreePieceInAPageOfAnotherRegion_IsNotCalledFragmented) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  const Stream stream(fake.device);
  AllocationRequest resident = request(100);
  resident.region = Region::residents;
  const Buffer a = memory.allocate(resident, stream);
  const std::string text = refusal(memory, request(100), stream);
  EXPECT_NE(text.find("other regions use parts of their pages"), std::string::npos) << text;
  EXPECT_EQ(text.find("fragmented"), std::string::npos) << text;
}

TEST(Ladder, Refusal_Full_NamesTheLimit) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(3 * kPage), stream);
  memory.register_external("openblas", 77, "a test");
  const std::string text = refusal(memory, request(2 * kPage), stream);
  EXPECT_NE(text.find("live bytes and the request exceed the limit"), std::string::npos) << text;
  EXPECT_NE(text.find("External: openblas 77 bytes"), std::string::npos) << text;
  EXPECT_FALSE(memory.try_allocate(request(2 * kPage), stream).has_value());
}

TEST(Ladder, Limit_OddOne_IsUsableToItsLastPage) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 8 * kPage + 1});
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(4 * kPage), stream), b = memory.allocate(request(4 * kPage), stream);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 8 * kPage);
  EXPECT_FALSE(memory.try_allocate(request(1), stream).has_value());
  memory.check();
}

TEST(Ladder, PendingThatBecameOrdered_CoalesceBeforeGrowth) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream own(fake.device), user(fake.device);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 20; ++i) {
    buffers.push_back(memory.allocate(request(kPage), own));
    buffers.back().record_use(user);
  }
  buffers.clear();
  own.ref().wait(user, user.ref().issued());
  const Buffer a = memory.allocate(request(20 * kPage), own);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 20 * kPage);
  memory.check();
}

}  // namespace
}  // namespace headroom::test
