#include <headroom/timeline.hpp>

#include <gtest/gtest.h>

#include <chrono>

#include "random_program.hpp"

namespace headroom::test {
namespace {

using Kind = AllocatorEvent::Kind;

struct Timelines : testing::Test {
  FakeDevice fake;
  Stream stream{fake.device}, user{fake.device};
  CachingAllocator memory{fake.device};
  Timeline timeline;
  std::uint64_t folded = 0;

  const MemoryInstant& fold() {
    for (const AllocatorEvent& event : memory.events(folded)) {
      timeline.apply(event);
      ++folded;
    }
    return timeline.now();
  }
};

std::string fold_error(const std::vector<AllocatorEvent>& events) {
  Timeline timeline;
  try {
    for (const AllocatorEvent& event : events) timeline.apply(event);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "(folded)";
}

TEST_F(Timelines, Views_CountOnceInTheUnionAndEachInTheSum) {
  Buffer flat = memory.allocate(request(150), stream);
  EXPECT_EQ(fold().union_bytes, 150U);
  Buffer first = flat.view(0, 100, "first"), second = flat.view(50, 100, "second");
  EXPECT_EQ(fold().union_bytes, 150U);
  EXPECT_EQ(fold().share_bytes, 350U);
  first.reset();
  EXPECT_EQ(fold().union_bytes, 100U);
  second.reset();
  EXPECT_EQ(fold().union_bytes, 0U);
  EXPECT_EQ(fold().share_bytes, 150U);
  EXPECT_EQ(fold().allocated_bytes(), 512U);
  flat.reset();
  EXPECT_EQ(fold().share_bytes, 0U);
  EXPECT_EQ(fold().allocated_bytes(), 0U);
}

TEST_F(Timelines, TwoBuffers_CountTwice) {
  const Buffer a = memory.allocate(request(512), stream), b = memory.allocate(request(512), stream);
  EXPECT_EQ(fold().allocated_bytes(), 1024U);
  EXPECT_EQ(fold().union_bytes, 1024U);
  EXPECT_EQ(fold().share_bytes, 1024U);
}

TEST_F(Timelines, ViewThatOutlivesItsBase_KeepsTheStorage) {
  Buffer base = memory.allocate(request(1000), stream);
  Buffer view = base.view(100, 200, "part");
  base.last_use(user, user.ref().mark());
  base.reset();
  EXPECT_EQ(fold().allocated_bytes(), 1024U);
  EXPECT_EQ(fold().union_bytes, 200U);
  EXPECT_EQ(fold().share_bytes, 200U);
  ASSERT_EQ(timeline.live().size(), 1U);
  EXPECT_FALSE(timeline.live()[0].held);
  view.reset();
  EXPECT_EQ(fold().allocated_bytes(), 0U);
  EXPECT_EQ(fold().pending_bytes(), 1024U);
}

TEST_F(Timelines, Live_NamesEachBufferUntilItsFreeIsCompleted) {
  fake.backend->set_now(7);
  AllocationRequest asked = request(1000, Category::parameter_full, "h.0");
  asked.unit = 3;
  asked.state = UseState::next;
  const Ticket before = stream.ref().mark();
  Buffer full = memory.allocate(asked, stream);
  const Buffer part = memory.allocate(request(10, Category::workspace, "part"), stream);
  full.retag(Category::parameter_full, UseState::current);
  const Ticket last = user.ref().mark();
  full.last_use(user, last);
  fold();
  std::vector<LiveBuffer> live = timeline.live();
  ASSERT_EQ(live.size(), 2U);
  EXPECT_EQ(memory.names()[live[0].name], "h.0");
  EXPECT_EQ(live[0].unit, 3);
  EXPECT_EQ(live[0].tag, Tag::parameter_full_current);
  EXPECT_EQ(live[0].bytes, 1024U);
  EXPECT_EQ(live[0].requested_bytes, 1000U);
  EXPECT_EQ(live[0].ticket, before);
  EXPECT_EQ(live[0].address, reinterpret_cast<std::uintptr_t>(full.data()));
  EXPECT_EQ(memory.events()[live[0].event].kind, Kind::alloc);
  EXPECT_EQ(memory.names()[live[1].name], "part");
  full.reset();
  EXPECT_EQ(fold().releasing_bytes, 1024U);
  EXPECT_EQ(fold().bytes(Tag::parameter_full_releasing), 0U);
  live = timeline.live();
  ASSERT_EQ(live.size(), 2U);
  EXPECT_TRUE(live[0].pending);
  ASSERT_FALSE(live[0].last_uses.empty());
  EXPECT_EQ(live[0].last_uses[0].stream, user.ref().id());
  EXPECT_EQ(live[0].last_uses[0].ticket, last);
  stream.ref().wait(user, last);
  memory.mark_step(4);
  EXPECT_EQ(fold().releasing_bytes, 0U);
  EXPECT_EQ(fold().step, 4);
  EXPECT_EQ(timeline.live().size(), 1U);
}

TEST_F(Timelines, Marks_SayWhereTheHostIs) {
  memory.mark_step(3);
  memory.mark_unit(2, "backward", "reduce_scatter");
  const MemoryInstant& now = fold();
  EXPECT_EQ(now.step, 3);
  EXPECT_EQ(now.unit, 2);
  ASSERT_TRUE(now.mark.has_value());
  EXPECT_EQ(split_mark(memory.names()[*now.mark]), (std::pair<std::string, std::string>{"backward", "reduce_scatter"}));
}

TEST_F(Timelines, LogWithAHole_IsRefusedNamingWhatIsMissing) {
  Buffer a = memory.allocate(request(512), stream), b = memory.allocate(request(512), stream);
  a.reset();
  const std::vector<AllocatorEvent> whole = memory.events();
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(fold_error(whole), "(folded)");
  for (std::size_t missing = 0; missing + 1 < whole.size(); ++missing) {
    std::vector<AllocatorEvent> holed = whole;
    holed.erase(holed.begin() + static_cast<std::ptrdiff_t>(missing));
    const std::string expected = "a hole: event " + std::to_string(missing) + " is missing";
    EXPECT_NE(fold_error(holed).find(expected), std::string::npos) << fold_error(holed);
  }
  EXPECT_NE(fold_error({whole.begin() + 3, whole.end()}).find("events 0 to 2 are missing"), std::string::npos);
  EXPECT_NE(fold_error({whole[0], whole[1], whole[0]}).find("event 0 comes again"), std::string::npos);
}

TEST_F(Timelines, ImpossibleEvents_AreRefusedAndChangeNothing) {
  AllocatorEvent event;
  event.bytes = event.requested_bytes = 512;
  for (const Kind kind : {Kind::free_requested, Kind::free_completed, Kind::retag, Kind::view, Kind::view_drop,
                          Kind::use, Kind::segment_unmap, static_cast<Kind>(200)}) {
    event.kind = kind;
    EXPECT_NE(fold_error({event}).find("event 0"), std::string::npos) << static_cast<int>(kind);
  }
  event.kind = Kind::alloc;
  AllocatorEvent again = event;
  again.number = 1;
  EXPECT_NE(fold_error({event, again}).find("event 1 allocates what is allocated"), std::string::npos);
  AllocatorEvent outside = again;
  outside.kind = Kind::view;
  outside.address = 500;
  EXPECT_NE(fold_error({event, outside}).find("event 1 views [500, +512) outside"), std::string::npos);
  timeline.apply(event);
  EXPECT_THROW(timeline.apply(again), InvalidInput);
  EXPECT_THROW(timeline.apply(outside), InvalidInput);
  EXPECT_EQ(timeline.now().event, 0U);
  EXPECT_EQ(timeline.now().allocated_bytes(), 512U);
  again.kind = Kind::free_requested;
  EXPECT_EQ(timeline.apply(again).allocated_bytes(), 0U);
  event.tag = static_cast<Tag>(99);
  EXPECT_NE(fold_error({event}).find("no known tag"), std::string::npos);
}

/// Sixteen buffers at a time, with a view and a use each, for as many events as a long run has.
TEST(Timeline, TenMillionEvents_FoldInBoundedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kEvents = 500'000;
#else
  constexpr std::uint64_t kEvents = 10'000'000;
#endif
  constexpr std::uint64_t kLive = 16;
  constexpr std::array kLife{Kind::free_requested, Kind::free_completed, Kind::alloc, Kind::view,
                             Kind::view_drop,      Kind::retag,          Kind::use};
  Timeline timeline;
  std::size_t most = 0;
  AllocatorEvent event;
  event.bytes = event.requested_bytes = 512;
  for (std::uint64_t allocation = 0; event.number < kEvents; ++allocation) {
    for (const Kind kind : kLife) {
      const bool ends = kind == Kind::free_requested || kind == Kind::free_completed;
      if (ends && allocation < kLive) continue;
      event.kind = kind;
      event.allocation = ends ? allocation - kLive : allocation;
      event.tag = kind == Kind::retag ? Tag::activation : Tag::workspace;
      event.name = kind == Kind::view || kind == Kind::view_drop ? 1 : 0;
      event.ticket = event.number;
      timeline.apply(event);
      ++event.number;
      most = std::max(most, timeline.entries());
    }
  }
  EXPECT_LE(most, 2 * kLive + 4);
  EXPECT_EQ(timeline.now().statistics.allocated_bytes.peak, kLive * 512);
  EXPECT_EQ(timeline.now().event, event.number - 1);
}

}  // namespace
}  // namespace headroom::test
