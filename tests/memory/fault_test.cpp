// What users of other allocators reported, as programs; those not here are beside what they belong to.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

// pytorch#35901: small lasting blocks carve up the large one that the first step left.
TEST(Faults, LastingBlockAfterALargeTransient_DoesNotCarveIt) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  memory.allocate(request(1024 * kPage), stream).reset();
  const Buffer lasting = memory.allocate(request(2 * kPage, Category::parameter_shard, "k", Region::residents), stream);
  const Buffer large = memory.allocate(request(1023 * kPage), stream);
  EXPECT_LE(memory.statistics().reserved_bytes.current, 1026 * kPage);
}

/// The activations of a step with sequences of `length`, and its workspaces: kept forward, freed backward.
void step(CachingAllocator& memory, const Stream& stream, std::size_t length) {
  std::vector<Buffer> kept;
  for (std::size_t layer = 0; layer < 12; ++layer) {
    kept.push_back(memory.allocate(request(length * 512), stream));
    const Buffer scores = memory.allocate(request(length * length * 4), stream);
    kept.push_back(memory.allocate(request(length * 4 * 512), stream));
  }
  while (!kept.empty()) {
    const Buffer gradient = memory.allocate(request(length * 512), stream);
    kept.pop_back();
  }
}

// SpecForge#739, dorado#1358: sequences of varying length fragment a pool late in training.
TEST(Faults, TwoHundredStepsOfVaryingLength_ReserveLittleMoreThanIsLive) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device);
  std::mt19937 random(5);
  step(memory, stream, 1024);
  for (std::int64_t number = 0; number < 200; ++number) {
    memory.mark_step(number);
    step(memory, stream, 64 + random() % 961);
  }
  const MemoryStatistics s = memory.statistics();
  EXPECT_LE(static_cast<double>(s.reserved_bytes.peak), 1.08 * static_cast<double>(s.allocated_bytes.peak));
}

// Megatron-LM#6885: what a stream leaves behind when it ends belongs to everyone.
TEST(Faults, BlocksOfAStreamThatEnded_ServeOthersWithoutGrowthOrWaits) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream lasting(fake.device);
  {
    const Stream gone(fake.device);
    memory.allocate(request(512 * kPage), gone).reset();
  }
  const Buffer buffer = memory.allocate(request(512 * kPage), lasting);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 512 * kPage);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
  memory.check();
}

// pytorch#71616: one long operation on a stream retains what others have done with.
TEST(Faults, FreeBehindABusyStream_DoesNotHoldBackLaterOnes) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream own(fake.device), busy(fake.device), quick(fake.device);
  Buffer p = memory.allocate(request(kPage), own), q = memory.allocate(request(kPage), own);
  const std::byte* const place = q.data();
  p.record_use(busy);
  q.record_use(quick);
  p.reset();
  q.reset();
  own.ref().wait(quick, quick.ref().issued());
  EXPECT_EQ(memory.allocate(request(kPage), own).data(), place);
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, kPage) << "the other still waits";
}

// RMM's limiting adaptor: a request that cannot fit must not make one fail that does.
TEST(Faults, RequestThatCannotFit_NeverRefusesAnotherThreadsThatDoes) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 100 * kPage, .event_capacity = 16});
  const Stream large(fake.device), small(fake.device);
  std::thread asks_too_much([&] {
    for (int i = 0; i < 2000; ++i) EXPECT_FALSE(memory.try_allocate(request(200 * kPage), large).has_value());
  });
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(memory.try_allocate(request(50 * kPage), small).has_value());
  asks_too_much.join();
  memory.check();
}

}  // namespace
}  // namespace headroom::test
