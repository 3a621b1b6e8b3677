#include <gtest/gtest.h>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

using Kind = AllocatorEvent::Kind;

struct Events : testing::Test {
  FakeDevice fake;
  Stream stream{fake.device}, user{fake.device};

  static std::vector<Kind> kinds(const CachingAllocator& memory) {
    std::vector<Kind> result;
    for (const AllocatorEvent& event : memory.events()) result.push_back(event.kind);
    return result;
  }
};

TEST_F(Events, OneLife_IsLoggedInOrder) {
  CachingAllocator memory(fake.device, {.limit_bytes = 1 << 20});
  fake.backend->set_now(42);
  memory.mark_step(3);
  memory.mark_unit(2, "forward", "compute");
  AllocationRequest asked = request(1000, Category::gradient_full, "grad");
  asked.unit = 2;
  asked.state = UseState::computing;
  Buffer a = memory.allocate(asked, stream);
  Buffer v = a.view(100, 200, "part");
  a.retag(Category::gradient_full, UseState::reducing);
  a.record_use(user);
  v.reset();
  a.reset();
  EXPECT_FALSE(memory.try_allocate(request(1 << 21), stream).has_value());
  stream.ref().wait(user, user.ref().issued());
  memory.mark_step(4);
  EXPECT_EQ(kinds(memory), (std::vector<Kind>{Kind::step, Kind::unit, Kind::segment_map, Kind::alloc, Kind::view,
                                              Kind::retag, Kind::view_drop, Kind::use, Kind::free_requested,
                                              Kind::out_of_memory, Kind::wait, Kind::free_completed, Kind::step}));
  const std::vector<AllocatorEvent> events = memory.events();
  const std::vector<std::string> names = memory.names();
  EXPECT_EQ(events[0].allocation, 3U);
  EXPECT_EQ(events[0].time_ns, 42);
  EXPECT_EQ(names.at(events[1].name), "forward compute");
  EXPECT_EQ(events[1].unit, 2);
  EXPECT_EQ(events[3].bytes, 1024U);
  EXPECT_EQ(events[3].requested_bytes, 1000U);
  EXPECT_EQ(names.at(events[3].name), "grad");
  EXPECT_EQ(events[3].tag, Tag::gradient_full_computing);
  EXPECT_EQ(events[4].address, events[3].address + 100);
  EXPECT_EQ(events[4].bytes, 200U);
  EXPECT_EQ(events[4].allocation, events[3].allocation);
  EXPECT_EQ(events[5].tag, Tag::gradient_full_reducing);
  EXPECT_EQ(events[7].stream, user.ref().id());
  EXPECT_EQ(events[7].ticket, user.ref().issued());
  EXPECT_EQ(events[9].requested_bytes, std::size_t{1} << 21U);
  EXPECT_EQ(events[10].stream, stream.ref().id());
  EXPECT_EQ(events[10].ticket, stream.ref().issued());
  EXPECT_EQ(events[10].address, user.ref().id());
  EXPECT_EQ(events[10].bytes, user.ref().issued());
}

TEST_F(Events, FirstShareDroppedBeforeAView_LogsItsRange) {
  CachingAllocator memory(fake.device);
  Buffer a = memory.allocate(request(1000), stream);
  Buffer v = a.view(100, 200, "part");
  a.reset();
  v.reset();
  EXPECT_EQ(kinds(memory), (std::vector<Kind>{Kind::segment_map, Kind::alloc, Kind::view, Kind::view_drop,
                                              Kind::view_drop, Kind::free_requested, Kind::free_completed}));
  EXPECT_EQ(memory.events()[3].bytes, 1000U);
  EXPECT_EQ(memory.events()[4].bytes, 200U);
}

TEST_F(Events, Log_FullOne_KeepsTheNewestAndCountsTheOthers) {
  for (const std::size_t capacity : {std::size_t{1}, std::size_t{100}, std::size_t{5000}}) {
    CachingAllocator memory(fake.device, {.event_capacity = capacity});
    for (std::int64_t step = 0; step < 12'000; ++step) memory.mark_step(step);
    const std::vector<AllocatorEvent> events = memory.events();
    ASSERT_EQ(events.size(), capacity);
    EXPECT_EQ(memory.dropped_events(), 12'000U - capacity);
    for (std::size_t i = 0; i < capacity; ++i) {
      ASSERT_EQ(events[i].number, memory.dropped_events() + i);
      ASSERT_EQ(events[i].allocation, events[i].number);
    }
  }
}

TEST_F(Events, Log_OfCapacityZero_KeepsNothing) {
  CachingAllocator memory(fake.device, {.event_capacity = 0});
  const Buffer a = memory.allocate(request(1), stream);
  EXPECT_TRUE(memory.events().empty());
  EXPECT_EQ(memory.dropped_events(), 2U);
  EXPECT_EQ(memory.peak().blocks.size(), 1U);
}

TEST_F(Events, Names_AreInternedOnce) {
  CachingAllocator memory(fake.device);
  for (int i = 0; i < 10; ++i) {
    const std::string name = i % 2 == 0 ? "even" : "odd";
    const Buffer a = memory.allocate(request(1, Category::other, name), stream);
  }
  EXPECT_EQ(memory.names(), (std::vector<std::string>{"even", "odd"}));
}

}  // namespace
}  // namespace headroom::test
