#include <gtest/gtest.h>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

TEST(StreamOrder, SameStream_ReusesAtOnceWithoutAWait) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  Buffer a = memory.allocate(request(kPage), stream);
  const std::byte* const place = a.data();
  a.reset();
  EXPECT_EQ(memory.allocate(request(kPage), stream).data(), place);
  EXPECT_EQ(memory.statistics().reserved_bytes.peak, kPage);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
}

TEST(StreamOrder, OtherStreamNotOrdered_DoesNotGetTheBlock) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream first(fake.device), second(fake.device);
  Buffer a = memory.allocate(request(kPage), first);
  const std::byte* const place = a.data();
  a.reset();
  fake.backend->finish(first.ref().id());
  const Buffer b = memory.allocate(request(kPage), second);
  EXPECT_NE(b.data(), place) << "what is complete in time must not matter";
}

TEST(StreamOrder, OtherStreamOrderedAfterTheFree_ReusesWithoutANewWait) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream first(fake.device), second(fake.device);
  Buffer a = memory.allocate(request(kPage), first);
  const std::byte* const place = a.data();
  a.reset();
  second.ref().wait(first, first.ref().issued());
  const Ticket before = second.ref().issued();
  EXPECT_EQ(memory.allocate(request(kPage), second).data(), place);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
  EXPECT_LE(second.ref().issued(), before + 1) << "only the mark of the free";
}

TEST(StreamOrder, OrderedOnlyUpToAnEarlierTicket_DoesNotGetTheBlock) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream first(fake.device), second(fake.device);
  Buffer a = memory.allocate(request(kPage), first);
  const std::byte* const place = a.data();
  second.ref().wait(first, first.ref().mark());
  a.reset();
  EXPECT_NE(memory.allocate(request(kPage), second).data(), place);
}

TEST(StreamOrder, RecordedUse_BlocksTheOwnStreamUntilItWaits) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream gather(fake.device), compute(fake.device);
  Buffer a = memory.allocate(request(kPage), gather);
  const std::byte* const place = a.data();
  a.record_use(compute);
  a.reset();
  Buffer b = memory.allocate(request(kPage), gather);
  EXPECT_NE(b.data(), place);
  gather.ref().wait(compute, compute.ref().issued());
  const Buffer c = memory.allocate(request(kPage), gather);
  EXPECT_EQ(c.data(), place);
  memory.check();
}

TEST(StreamOrder, Pending_HandedToAnotherOrderedStream_LogsItsEndFirst) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream gather(fake.device), compute(fake.device), third(fake.device);
  Buffer a = memory.allocate(request(kPage), gather);
  const std::byte* const place = a.data();
  a.record_use(compute);
  a.reset();
  third.ref().wait(compute, compute.ref().issued());
  third.ref().wait(gather, gather.ref().issued());
  const Buffer b = memory.allocate(request(kPage), third);
  EXPECT_EQ(b.data(), place);
  const std::vector<AllocatorEvent> events = memory.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events[events.size() - 2].kind, AllocatorEvent::Kind::free_completed);
  EXPECT_EQ(events.back().kind, AllocatorEvent::Kind::alloc);
  memory.check();
}

TEST(StreamOrder, LastUse_KnownToBeOrdered_CompletesTheFreeAtOnce) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream gather(fake.device), compute(fake.device);
  Buffer a = memory.allocate(request(kPage), gather);
  const Ticket used = compute.ref().mark();
  gather.ref().wait(compute, used);
  compute.ref().mark();
  a.last_use(compute, used);
  const Ticket marks = compute.ref().issued();
  a.reset();
  EXPECT_EQ(compute.ref().issued(), marks) << "no fresh ticket where the last use is known";
  EXPECT_EQ(memory.statistics().active_bytes.current, 0U);
}

TEST(StreamOrder, LastUse_OfTheOwnStream_IsWhatOthersMustBeOrderedAfter) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream own(fake.device), other(fake.device);
  Buffer a = memory.allocate(request(kPage), own);
  const std::byte* const place = a.data();
  const Ticket used = own.ref().mark();
  other.ref().wait(own, used);
  own.ref().mark();
  a.last_use(own, used);
  a.reset();
  EXPECT_EQ(memory.allocate(request(kPage), other).data(), place);
}

TEST(StreamOrder, RecordUse_BesideALastUse_CoversAllWorkUntilTheFree) {
  for (const bool last_use_first : {true, false}) {
    FakeDevice fake;
    CachingAllocator memory(fake.device);
    const Stream own(fake.device), user(fake.device);
    Buffer a = memory.allocate(request(kPage), own);
    const Ticket used = user.ref().mark();
    own.ref().wait(user, used);
    if (last_use_first) a.last_use(user, used);
    a.record_use(user);
    if (!last_use_first) a.last_use(user, used);
    a.reset();
    EXPECT_EQ(memory.statistics().pending_free_bytes.current, kPage);
  }
}

TEST(StreamOrder, LastUse_TicketNotIssued_IsRefused) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  Buffer a = memory.allocate(request(1), stream);
  EXPECT_THROW(a.last_use(stream, stream.ref().issued() + 1), std::logic_error);
}

TEST(StreamOrder, SixStreams_CollapsedUses_WaitForAllOfThem) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  std::vector<Stream> streams;
  for (int i = 0; i < 7; ++i) streams.emplace_back(fake.device);
  Buffer a = memory.allocate(request(kPage), streams[0]);
  for (std::size_t i = 1; i < 6; ++i) a.record_use(streams[i]);
  a.reset();
  memory.check();
  const Buffer b = memory.allocate(request(kPage), streams[6]);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_GE(streams[6].ref().knows(streams[i]), streams[i].ref().issued()) << i;
  }
  EXPECT_EQ(memory.statistics().waited_reuse, 1U);
  memory.check();
}

TEST(StreamOrder, DestroyedStream_ItsBlocksAndUsesDoNotBlockOthers) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  const Stream lasting(fake.device);
  Buffer a;
  {
    const Stream gone(fake.device);
    a = memory.allocate(request(kPage), gone);
  }
  a.reset();
  EXPECT_TRUE(memory.try_allocate(request(kPage), lasting).has_value());
  memory.check();
}

TEST(StreamOrder, StreamOfAnotherDevice_IsRefused) {
  FakeDevice fake, other;
  CachingAllocator memory(fake.device);
  const Stream own(fake.device), foreign(other.device);
  EXPECT_THROW(static_cast<void>(memory.allocate(request(1), foreign)), std::logic_error);
  Buffer a = memory.allocate(request(1), own);
  EXPECT_THROW(a.record_use(foreign), std::logic_error);
  memory.check();
}

// What record_stream does to a host that runs ahead, and tickets do not: 32 gathered sets in the memory of two.
TEST(StreamOrder, GatheredSetsBehindRunningHost_StayWithinTwo) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream gather(fake.device), compute(fake.device);
  std::vector<Ticket> released;
  for (std::size_t layer = 0; layer < 32; ++layer) {
    if (layer >= 2) gather.ref().wait(compute, released[layer - 2]);
    Buffer set = memory.allocate(request(10 * kPage), gather);
    const Ticket gathered = gather.ref().enqueue({});
    compute.ref().wait(gather, gathered);
    compute.ref().enqueue({});
    set.record_use(compute);
    set.reset();
    released.push_back(compute.ref().issued());
  }
  EXPECT_LE(memory.statistics().reserved_bytes.peak, 20 * kPage);
  EXPECT_EQ(fake.backend->synchronized, 0U);
}

}  // namespace
}  // namespace headroom::test
