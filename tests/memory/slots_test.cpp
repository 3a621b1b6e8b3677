#include <gtest/gtest.h>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

AllocationRequest set(std::string_view name, std::size_t bytes = kPage) {
  AllocationRequest result = request(bytes, Category::parameter_full, name, Region::communication);
  result.state = UseState::next;
  return result;
}

struct Slots : testing::Test {
  FakeDevice fake;
  CachingAllocator memory{fake.device, {.limit_bytes = 64 * kPage}};
  Stream gather{fake.device, {StreamRole::gather, "gather"}}, compute{fake.device};

  std::string refusal(std::size_t offset, const AllocationRequest& asked, StreamRef stream) {
    try {
      static_cast<void>(memory.allocate_slot(offset, asked, stream));
    } catch (const std::logic_error& error) {
      memory.check();
      return error.what();
    }
    return "(not refused)";
  }
};

TEST_F(Slots, Commit_TakesPagesThatTheRegionsOwnBlocksLeft) {
  static_cast<void>(memory.allocate(set("observed", 60 * kPage), gather));  // freed at once
  gather.ref().synchronize();
  memory.commit_slots(32 * kPage);
  EXPECT_LE(memory.statistics().reserved_bytes.current, 64 * kPage);
  memory.check();
}

TEST_F(Slots, Commit_BacksTheAreaAtOnce) {
  memory.commit_slots(3 * kPage + 1);
  EXPECT_EQ(memory.statistics().regions[1].reserved_bytes.current, 4 * kPage);
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 0U);
  const Buffer a = memory.allocate_slot(0, set("a"), gather), b = memory.allocate_slot(kPage, set("b"), gather);
  EXPECT_EQ(b.data(), a.data() + kPage);
  EXPECT_EQ(memory.statistics().regions[1].allocated_bytes.current, 2 * kPage);
  EXPECT_EQ(memory.statistics().num_device_alloc, 1U) << "slots never map anything";
  memory.check();
}

TEST_F(Slots, OverlapOfALiveSlot_IsRefusedByName) {
  memory.commit_slots(4 * kPage);
  const Buffer a = memory.allocate_slot(kPage, set("first"), gather);
  const std::string text = refusal(512, set("second"), gather);
  EXPECT_NE(text.find("'second'"), std::string::npos) << text;
  EXPECT_NE(text.find("'first'"), std::string::npos) << text;
  EXPECT_NE(text.find("which is live"), std::string::npos) << text;
}

// A release that comes too late, or a gather too early, in a schedule.
TEST_F(Slots, OverlapOfASlotWhoseUsesAreNotOrdered_IsRefused) {
  memory.commit_slots(2 * kPage);
  Buffer a = memory.allocate_slot(0, set("first"), gather);
  a.record_use(compute);
  a.reset();
  fake.backend->finish(compute.ref().id());
  const std::string text = refusal(0, set("second"), gather);
  EXPECT_NE(text.find("'second'"), std::string::npos) << text;
  EXPECT_NE(text.find("'first'"), std::string::npos) << text;
  EXPECT_NE(text.find("not ordered after"), std::string::npos) << text;
  gather.ref().wait(compute, compute.ref().issued());
  EXPECT_TRUE(memory.allocate_slot(0, set("second"), gather));
  memory.check();
}

TEST_F(Slots, CompletedSlot_StillBindsStreamsThatAreNotOrdered) {
  memory.commit_slots(2 * kPage);
  memory.allocate_slot(0, set("first"), gather).reset();
  EXPECT_EQ(memory.statistics().active_bytes.current, 0U);
  EXPECT_NE(refusal(kPage / 2, set("second"), compute).find("not ordered after"), std::string::npos);
  EXPECT_TRUE(memory.allocate_slot(0, set("third"), gather));
}

TEST_F(Slots, PartlyReusedSlot_BindsWithWhatIsLeftOfIt) {
  memory.commit_slots(3 * kPage);
  memory.allocate_slot(0, set("first", 3 * kPage), gather).reset();
  const Buffer middle = memory.allocate_slot(kPage, set("middle"), gather);
  memory.check();
  EXPECT_NE(refusal(0, set("left"), compute).find("'first'"), std::string::npos);
  EXPECT_NE(refusal(2 * kPage, set("right"), compute).find("'first'"), std::string::npos);
  compute.ref().wait(gather, gather.ref().issued());
  const Buffer left = memory.allocate_slot(0, set("left"), compute);
  const Buffer right = memory.allocate_slot(2 * kPage, set("right"), compute);
  memory.check();
}

TEST_F(Slots, PendingSlot_CompletesRightBeforeItsNextUser) {
  memory.commit_slots(kPage);
  Stream other{fake.device};
  Buffer a = memory.allocate_slot(0, set("first"), gather);
  a.record_use(compute);
  a.reset();
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, kPage);
  other.ref().wait(compute, compute.ref().issued());
  other.ref().wait(gather, gather.ref().issued());
  const Buffer b = memory.allocate_slot(0, set("second"), other);
  const std::vector<AllocatorEvent> events = memory.events();
  EXPECT_EQ(events[events.size() - 2].kind, AllocatorEvent::Kind::free_completed);
  EXPECT_EQ(events[events.size() - 2].allocation, 0U);
  EXPECT_EQ(events.back().kind, AllocatorEvent::Kind::alloc);
  memory.check();
}

TEST_F(Slots, OutsideTheArea_OrOffTheGranule_IsRefused) {
  memory.commit_slots(2 * kPage);
  for (const std::size_t offset : {kPage + 512, 2 * kPage, 3 * kPage, SIZE_MAX / 512 * 512, std::size_t{100}}) {
    EXPECT_NE(refusal(offset, set("x"), gather).find("committed for slots"), std::string::npos) << offset;
  }
  EXPECT_NE(refusal(0, set("x", SIZE_MAX), gather).find("committed for slots"), std::string::npos);
  EXPECT_TRUE(memory.allocate_slot(2 * kPage, set("empty", 0), gather));
}

TEST_F(Slots, Commit_WithLiveSlots_IsRefused) {
  memory.commit_slots(2 * kPage);
  const Buffer a = memory.allocate_slot(0, set("x"), gather);
  EXPECT_THROW(memory.commit_slots(4 * kPage), std::logic_error);
}

TEST_F(Slots, Commit_AnotherPlan_WaitsForTheOldOneAndForgetsIt) {
  memory.commit_slots(4 * kPage);
  Buffer a = memory.allocate_slot(0, set("x", 4 * kPage), gather);
  a.record_use(compute);
  a.reset();
  memory.commit_slots(kPage);
  EXPECT_EQ(memory.statistics().regions[1].reserved_bytes.current, kPage);
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, 0U);
  EXPECT_TRUE(fake.backend->complete(compute.ref().id(), compute.ref().issued()));
  EXPECT_TRUE(memory.allocate_slot(0, set("y"), compute)) << "nothing of the old plan binds";
  memory.commit_slots(8 * kPage);
  EXPECT_EQ(memory.statistics().regions[1].reserved_bytes.current, 8 * kPage);
  memory.commit_slots(0);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 0U);
  memory.check();
}

TEST_F(Slots, Commit_AboveTheLimit_ReturnsOtherPagesOrRefuses) {
  memory.allocate(request(40 * kPage), gather).reset();
  memory.commit_slots(50 * kPage);
  EXPECT_EQ(memory.statistics().reserved_bytes.current, 64 * kPage);
  EXPECT_THROW(memory.commit_slots(65 * kPage), OutOfMemory);
  const Buffer a = memory.allocate(request(14 * kPage), gather);
  EXPECT_THROW(memory.commit_slots(51 * kPage), OutOfMemory);
  EXPECT_EQ(memory.statistics().regions[1].reserved_bytes.current, 50 * kPage);
  memory.check();
}

TEST_F(Slots, OtherBuffersOfTheRegion_NeverTouchTheSlots) {
  const Buffer before = memory.allocate(request(kPage, Category::communication, "b", Region::communication), gather);
  memory.commit_slots(4 * kPage);
  const Buffer slot = memory.allocate_slot(0, set("x", 4 * kPage), gather);
  const Buffer after = memory.allocate(request(kPage, Category::communication, "a", Region::communication), gather);
  for (const Buffer* other : {&before, &after}) {
    EXPECT_TRUE(other->data() >= slot.data() + slot.bytes() || other->data() + other->bytes() <= slot.data());
  }
  EXPECT_EQ(memory.statistics().regions[1].reserved_bytes.current, 6 * kPage);
  memory.check();
}

}  // namespace
}  // namespace headroom::test
