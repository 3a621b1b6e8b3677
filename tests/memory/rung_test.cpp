#include <gtest/gtest.h>

#include <functional>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

AllocationRequest resident(std::size_t bytes) {
  return request(bytes, Category::parameter_shard, "resident", Region::residents);
}

struct Scene {
  FakeDevice fake;
  CachingAllocator memory{fake.device, {.limit_bytes = 8 * kPage}};
  Stream stream{fake.device}, other{fake.device};
  Buffer kept;
};

struct RungCase {
  Rung rung;
  std::function<void(Scene&)> prepare;  ///< Whereafter a request of 8 pages on `stream` is served by the rung.
};

class Rungs : public testing::TestWithParam<RungCase> {};

TEST_P(Rungs, Allocation_ServedByIt_IsCountedAndLogged) {
  Scene scene;
  GetParam().prepare(scene);
  const auto rung = static_cast<std::size_t>(GetParam().rung);
  const MemoryStatistics before = scene.memory.statistics();
  const Buffer buffer = scene.memory.allocate(request(8 * kPage), scene.stream);
  const MemoryStatistics after = scene.memory.statistics();
  for (std::size_t i = 0; i < after.rungs.size(); ++i) {
    EXPECT_EQ(after.rungs[i] - before.rungs[i], i == rung ? 1U : 0U) << "rung " << i;
  }
  EXPECT_EQ(scene.memory.events().back().kind, AllocatorEvent::Kind::alloc);
  EXPECT_EQ(scene.memory.events().back().rung(), GetParam().rung);
  EXPECT_EQ(scene.fake.backend->synchronized > 0, GetParam().rung == Rung::host_waited);
  scene.memory.check();
}

std::string name_of_rung(const testing::TestParamInfo<RungCase>& each) {
  constexpr std::array kNames{"ready", "grown", "waited", "callback", "returned", "host_waited"};
  return kNames.at(static_cast<std::size_t>(each.param.rung));
}

INSTANTIATE_TEST_SUITE_P(
    All, Rungs,
    testing::Values(RungCase{Rung::ready, [](Scene& s) { s.memory.allocate(request(8 * kPage), s.stream).reset(); }},
                    RungCase{Rung::grown, [](Scene&) {}},
                    RungCase{Rung::waited, [](Scene& s) { s.memory.allocate(request(8 * kPage), s.other).reset(); }},
                    RungCase{Rung::callback,
                             [](Scene& s) {
                               s.kept = s.memory.allocate(request(8 * kPage), s.stream);
                               s.memory.add_pressure_callback([&s](std::size_t) { return s.kept.reset(), true; });
                             }},
                    RungCase{Rung::returned,
                             [](Scene& s) {
                               s.memory.allocate(resident(8 * kPage), s.stream).reset();
                               s.stream.ref().synchronize();
                               s.fake.backend->synchronized = 0;
                             }},
                    RungCase{Rung::host_waited,
                             [](Scene& s) { s.memory.allocate(resident(8 * kPage), s.stream).reset(); }}),
    name_of_rung);

TEST(WaitedReuse, EachWait_IsCountedByConsumerAndProducer) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = kPage});
  const Stream a(fake.device), b(fake.device), c(fake.device);
  Buffer buffer = memory.allocate(request(kPage), a);
  buffer.record_use(b);
  buffer.reset();
  memory.allocate(request(kPage), c).reset();
  memory.allocate(request(kPage), a).reset();
  memory.allocate(request(kPage), c).reset();
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.waited_reuse, 3U);
  std::map<std::pair<StreamId, StreamId>, std::uint64_t> counts;
  for (const WaitedReuse& pair : s.waited) counts[{pair.consumer, pair.producer}] = pair.count;
  const StreamId i = a.ref().id(), j = b.ref().id(), k = c.ref().id();
  EXPECT_EQ(counts, (std::map<std::pair<StreamId, StreamId>, std::uint64_t>{{{k, i}, 2}, {{k, j}, 1}, {{i, k}, 1}}));
}

TEST(Pressure, Callbacks_AreAskedInOrderUntilOneIsEnough) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device);
  std::vector<Buffer> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(memory.allocate(request(kPage), stream));
  std::vector<std::pair<int, std::size_t>> asked;
  memory.add_pressure_callback([&](std::size_t wanted) { return asked.emplace_back(0, wanted), false; });
  memory.add_pressure_callback([&](std::size_t wanted) {
    asked.emplace_back(1, wanted);
    kept.clear();
    return true;
  });
  memory.add_pressure_callback([&](std::size_t wanted) { return asked.emplace_back(2, wanted), true; });
  const Buffer a = memory.allocate(request(2 * kPage), stream);
  EXPECT_EQ(asked, (std::vector<std::pair<int, std::size_t>>{{0, 2 * kPage}, {1, 2 * kPage}}));
  EXPECT_EQ(memory.events().back().rung(), Rung::callback);
  memory.check();
}

TEST(Pressure, WhatACallbackFrees_MayStillBePending) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device), user(fake.device);
  Buffer kept = memory.allocate(request(4 * kPage), stream);
  kept.record_use(user);
  memory.add_pressure_callback([&](std::size_t) { return kept.reset(), true; });
  const Buffer a = memory.allocate(request(4 * kPage), stream);
  EXPECT_GE(stream.ref().knows(user), user.ref().issued()) << "the device waits for the use";
  EXPECT_EQ(fake.backend->synchronized, 0U);
  memory.check();
}

TEST(Pressure, CallbackThatAllocatesOrThrows_ChangesNothing) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device);
  const Buffer kept = memory.allocate(request(3 * kPage), stream);
  bool allocates = true;
  memory.add_pressure_callback([&](std::size_t) -> bool {
    if (!allocates) throw std::runtime_error("callback");
    return static_cast<bool>(memory.allocate(request(1), stream));
  });
  const std::uint64_t before = detail::AllocatorState::of(memory).hash();
  EXPECT_THROW(static_cast<void>(memory.allocate(request(2 * kPage), stream)), std::logic_error);
  allocates = false;
  EXPECT_THROW(static_cast<void>(memory.allocate(request(2 * kPage), stream)), std::runtime_error);
  EXPECT_EQ(detail::AllocatorState::of(memory).hash(), before);
  memory.check();
  EXPECT_TRUE(memory.try_allocate(request(kPage), stream).has_value());
}

TEST(Pressure, RequestAboveTheLimit_AsksNobody) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 4 * kPage});
  const Stream stream(fake.device);
  int asked = 0;
  memory.add_pressure_callback([&](std::size_t) { return ++asked, true; });
  EXPECT_FALSE(memory.try_allocate(request(5 * kPage), stream).has_value());
  EXPECT_EQ(asked, 0);
}

TEST(Trim, OnlyPagesWhoseLastUseTheHostSaw_GoBack) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream stream(fake.device), user(fake.device);
  const Buffer low = memory.allocate(request(kPage + 512), stream);
  Buffer middle = memory.allocate(request(3 * kPage), stream), high = memory.allocate(request(2 * kPage), stream);
  high.record_use(user);
  middle.reset();
  high.reset();
  EXPECT_EQ(memory.statistics().releasable_bytes, 0U);
  memory.trim();
  EXPECT_EQ(memory.statistics().num_device_free, 0U);
  user.ref().synchronize();
  stream.ref().synchronize();
  EXPECT_EQ(memory.statistics().releasable_bytes, 5 * kPage);
  const std::size_t reserved = memory.statistics().reserved_bytes.current;
  memory.trim();
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.reserved_bytes.current, reserved - 5 * kPage);
  EXPECT_EQ(s.releasable_bytes, 0U);
  EXPECT_EQ(s.pending_free_bytes.current, 0U);
  std::size_t asked_back = 0;
  for (const AllocatorEvent& event : memory.events()) {
    if (event.kind == AllocatorEvent::Kind::trim) asked_back = event.bytes;
  }
  EXPECT_EQ(asked_back, 5 * kPage);
  memory.check();
  EXPECT_TRUE(memory.allocate(request(4 * kPage), stream));
}

/// Two streams that each want four pages, one after the other: without a hint they share nothing.
void step(CachingAllocator& memory, std::int64_t number, StreamRef first, StreamRef second, std::size_t pages) {
  memory.mark_step(number);
  memory.allocate(request(pages * kPage), first).reset();
  memory.allocate(request(pages * kPage), second).reset();
}

TEST(SoftLimit, LearnedFromTheSecondAndThirdStep_PrefersAWaitToGrowth) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream first(fake.device), second(fake.device);
  for (std::int64_t number = 0; number < 3; ++number) {
    step(memory, number, first, second, 4);
    EXPECT_EQ(memory.statistics().soft_limit_bytes, 0U);
  }
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
  step(memory, 3, first, second, 4);
  EXPECT_EQ(memory.statistics().soft_limit_bytes, 8 * kPage);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
  step(memory, 4, first, second, 8);
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.reserved_bytes.peak, 8 * kPage) << "a longer step waits for what is there";
  EXPECT_EQ(s.waited_reuse, 2U);
  step(memory, 5, first, second, 9);
  EXPECT_EQ(memory.statistics().reserved_bytes.peak, 9 * kPage) << "and grows where waiting cannot help";
  EXPECT_EQ(memory.statistics().soft_limit_bytes, 8 * kPage);
  memory.check();
}

TEST(SoftLimit, BelowIt_GrowthStaysCheaperThanAWait) {
  FakeDevice fake;
  CachingAllocator memory(fake.device);
  const Stream first(fake.device), second(fake.device);
  for (std::int64_t number = 0; number < 4; ++number) step(memory, number, first, second, 4);
  first.ref().synchronize();
  second.ref().synchronize();
  memory.trim();
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 0U);
  step(memory, 4, first, second, 4);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 8 * kPage);
  EXPECT_EQ(memory.statistics().waited_reuse, 0U);
}

TEST(Refusal, Details_AreComplete) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 6 * kPage});
  const Stream stream(fake.device), user(fake.device);
  memory.register_external("openblas", 77, "a test");
  memory.register_external("mpi", 23, "a test");
  const Buffer a = memory.allocate(request(kPage), stream);
  Buffer gone = memory.allocate(request(kPage), stream), pending = memory.allocate(request(kPage), stream);
  const Buffer d = memory.allocate(request(3 * kPage, Category::optimizer_state), stream);
  gone.reset();
  pending.record_use(user);
  pending.reset();
  try {
    static_cast<void>(memory.allocate(request(3 * kPage), stream));
    FAIL();
  } catch (const OutOfMemory& error) {
    const OutOfMemory::Details& details = error.details();
    EXPECT_EQ(details.requested_bytes, 3 * kPage);
    EXPECT_EQ(details.limit_bytes, 6 * kPage);
    EXPECT_EQ(details.reserved_bytes, 6 * kPage);
    EXPECT_EQ(details.allocated_bytes, 4 * kPage);
    EXPECT_EQ(details.pending_bytes, kPage);
    EXPECT_EQ(details.cached_bytes, kPage);
    EXPECT_EQ(details.largest_free_block_bytes, kPage);
    EXPECT_EQ(details.external_bytes, 100U);
    const std::string text = error.what();
    for (const char* part : {"live bytes and the request exceed the limit", "Limit 24576 bytes, reserved 24576 bytes",
                             "allocated 16384 bytes", "pending 4096 bytes", "cached 4096 bytes",
                             "largest free block 4096 bytes", "activation 4096 bytes", "optimizer_state 12288 bytes",
                             "External: mpi 23 bytes", "External: openblas 77 bytes"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
  }
}

}  // namespace
}  // namespace headroom::test
