#include <gtest/gtest.h>

#include <numeric>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

TEST(Statistics, Allocate_RoundsToGranules_CountsBlockAndRequestedBytes) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(1), stream), b = memory.allocate(request(513), stream);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.allocation.current, 2U);
  EXPECT_EQ(s.allocated_bytes.current, 512U + 1024U);
  EXPECT_EQ(s.requested_bytes.current, 514U);
  EXPECT_EQ(s.active_bytes.current, s.allocated_bytes.current);
  EXPECT_EQ(s.reserved_bytes.current, kPage);
  EXPECT_EQ(s.cached_bytes, kPage - 1536);
  EXPECT_EQ(s.largest_free_block, kPage - 1536);
  EXPECT_EQ(s.num_device_alloc, 1U);
  EXPECT_EQ(s.segment.current, 0U);
  EXPECT_EQ(s.inactive_split_bytes.current, 0U);
}

TEST(Statistics, Free_OnItsOwnStreamOnly_IsCompletedAtOnce) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  Buffer a = memory.allocate(request(1000), stream);
  a.record_use(stream);
  a.reset();
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.allocated_bytes.current, 0U);
  EXPECT_EQ(s.active_bytes.current, 0U);
  EXPECT_EQ(s.pending_free_bytes.peak, 0U);
  EXPECT_EQ(s.allocated_bytes.freed, 1024U);
}

TEST(Statistics, Free_UsedByAnotherStream_IsActiveUntilItsOwnStreamIsOrdered) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream own(fake.device), user(fake.device);
  Buffer a = memory.allocate(request(1000), own);
  a.record_use(user);
  a.reset();
  MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.allocation.current, 0U);
  EXPECT_EQ(s.allocated_bytes.current, 0U);
  EXPECT_EQ(s.active.current, 1U);
  EXPECT_EQ(s.active_bytes.current, 1024U);
  EXPECT_EQ(s.requested_bytes.current, 1000U);
  EXPECT_EQ(s.pending_free_bytes.current, 1024U);
  fake.backend->finish(user.ref().id());
  memory.mark_step(1);
  EXPECT_EQ(memory.statistics().active.current, 1U) << "completion in time must not be looked at";
  own.ref().wait(user, user.ref().issued());
  memory.mark_step(2);
  s = memory.statistics();
  EXPECT_EQ(s.active_bytes.current, 0U);
  EXPECT_EQ(s.pending_free_bytes.current, 0U);
  EXPECT_EQ(s.pending_free_bytes.peak, 1024U);
  EXPECT_EQ(s.requested_bytes.current, 0U);
  memory.check();
}

TEST(Statistics, ResetPeak_WithLiveBytes_SetsPeakToCurrent) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  Buffer a = memory.allocate(request(10 * 512), stream);
  { const Buffer spike = memory.allocate(request(100 * 512), stream); }
  memory.reset_peak();
  EXPECT_EQ(memory.statistics().allocated_bytes.peak, 10U * 512U);
  EXPECT_EQ(memory.peak().allocated_bytes, 10U * 512U);
  Buffer b = memory.allocate(request(5 * 512), stream);
  b.reset();
  EXPECT_EQ(memory.statistics().allocated_bytes.peak, 15U * 512U);
  a.reset();
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.allocated_bytes.peak, 15U * 512U);
  EXPECT_EQ(s.allocated_bytes.current, 0U);
  EXPECT_EQ(s.allocated_bytes.allocated, 115U * 512U);
  EXPECT_EQ(s.regions[2].allocated_bytes.peak, 15U * 512U);
  memory.check();
}

TEST(Statistics, Regions_EachRequest_CountsInItsOwn) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  const Buffer a = memory.allocate(request(512, Category::parameter_shard, "p", Region::residents), stream);
  const Buffer b = memory.allocate(request(1024, Category::communication, "c", Region::communication), stream);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.regions[0].allocated_bytes.current, 512U);
  EXPECT_EQ(s.regions[1].allocated_bytes.current, 1024U);
  EXPECT_EQ(s.regions[2].allocated_bytes.current, 0U);
  EXPECT_EQ(s.regions[0].reserved_bytes.current, kPage);
  EXPECT_EQ(s.regions[2].reserved_bytes.current, 0U);
  EXPECT_EQ(s.tag_bytes[static_cast<std::size_t>(Tag::communication)], 1024U);
}

TEST(Statistics, Tags_AfterRetag_StillSumToAllocated) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  AllocationRequest full = request(2000, Category::parameter_full, "full");
  full.state = UseState::next;
  Buffer a = memory.allocate(full, stream);
  const Buffer b = memory.allocate(request(512), stream);
  a.retag(Category::parameter_full, UseState::current);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.tag_bytes[static_cast<std::size_t>(Tag::parameter_full_next)], 0U);
  EXPECT_EQ(s.tag_bytes[static_cast<std::size_t>(Tag::parameter_full_current)], 2048U);
  EXPECT_EQ(std::accumulate(s.tag_bytes.begin(), s.tag_bytes.end(), std::size_t{0}), s.allocated_bytes.current);
  memory.check();
}

TEST(Statistics, ZeroBytes_GiveABufferWithoutBytes) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  const Stream stream(fake.device), other(fake.device);
  Buffer a = memory.allocate(request(0), stream), b = memory.allocate(request(0), stream);
  EXPECT_TRUE(a && b);
  EXPECT_NE(a.data(), nullptr);
  EXPECT_EQ(a.bytes(), 0U);
  EXPECT_EQ(memory.statistics().allocation.current, 2U);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 0U);
  EXPECT_EQ(a.tensor(DType::f32, {0, 4, 1, 1}).numel(), 0);
  a.record_use(other);
  a.reset();
  b.reset();
  EXPECT_EQ(memory.statistics().active.current, 0U);
  memory.check();
}

TEST(Statistics, External_Registered_ReplacesTheFigureOfThatName) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  memory.register_external("openblas", 100, "a test");
  memory.register_external("mpi", 7, "a test");
  memory.register_external("openblas", 50, "a test");
  const std::map<std::string, ExternalBytes> external = memory.external();
  ASSERT_EQ(external.size(), 2U);
  EXPECT_EQ(external.at("mpi").bytes, 7U);
  EXPECT_EQ(external.at("openblas").bytes, 50U);
  EXPECT_EQ(external.at("openblas").source, "a test");
  EXPECT_EQ(memory.device(), fake.device);
}

}  // namespace
}  // namespace headroom::test
