#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

struct Peaks : testing::Test {
  FakeDevice fake;
  CachingAllocator memory{fake.device};
  Stream stream{fake.device};

  Buffer take(std::size_t bytes, std::string_view name, Category category = Category::activation) {
    return memory.allocate(request(bytes, category, name), stream);
  }
  static std::size_t own_bytes(const MemoryPeak& peak) {
    std::size_t sum = 0;
    for (const LiveBlock& block : peak.blocks) sum += block.shared ? 0 : block.bytes;
    return sum;
  }
  static const LiveBlock* find(const MemoryPeak& peak, const std::string& name) {
    const auto found = std::ranges::find(peak.blocks, name, &LiveBlock::name);
    return found == peak.blocks.end() ? nullptr : &*found;
  }
};

TEST_F(Peaks, Blocks_AreThoseLiveAtThePeakAndSumToIt) {
  const Buffer a = take(1000, "a");
  Buffer b = take(3000, "b", Category::workspace);
  { const Buffer c = take(512, "c"); }
  b.reset();
  const Buffer d = take(512, "d");
  const MemoryPeak peak = memory.peak();
  EXPECT_EQ(peak.allocated_bytes, 1024U + 3072U + 512U);
  EXPECT_EQ(peak.allocated_bytes, memory.statistics().allocated_bytes.peak);
  EXPECT_EQ(own_bytes(peak), peak.allocated_bytes);
  ASSERT_EQ(peak.blocks.size(), 3U);
  EXPECT_EQ(find(peak, "d"), nullptr);
  const LiveBlock* block = find(peak, "b");
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->tag, Tag::workspace);
  ASSERT_TRUE(block->freed_event.has_value());
  EXPECT_EQ(memory.events().at(*block->freed_event).kind, AllocatorEvent::Kind::free_requested);
  EXPECT_EQ(memory.events().at(block->allocated_event).kind, AllocatorEvent::Kind::alloc);
  EXPECT_FALSE(find(peak, "a")->freed_event.has_value());
  EXPECT_EQ(memory.events().at(peak.event).kind, AllocatorEvent::Kind::alloc);
  EXPECT_EQ(std::accumulate(peak.tag_bytes.begin(), peak.tag_bytes.end(), std::size_t{0}), peak.allocated_bytes);
}

TEST_F(Peaks, Peak_WhileAtIt_ListsTheBlocks) {
  const Buffer a = take(1000, "a"), b = take(1000, "b");
  EXPECT_EQ(own_bytes(memory.peak()), 2048U);
  const Buffer c = take(1000, "c");
  EXPECT_EQ(own_bytes(memory.peak()), 3072U);
}

TEST_F(Peaks, RetagAfterThePeak_DoesNotChangeItsTags) {
  AllocationRequest full = request(2048, Category::parameter_full, "p");
  full.state = UseState::next;
  Buffer a = memory.allocate(full, stream);
  a.retag(Category::parameter_full, UseState::current);
  const MemoryPeak peak = memory.peak();
  EXPECT_EQ(peak.tag_bytes[static_cast<std::size_t>(Tag::parameter_full_next)], 2048U);
  EXPECT_EQ(peak.blocks.at(0).tag, Tag::parameter_full_next);
}

TEST_F(Peaks, Views_AreListedAsSharedAndNotSummed) {
  const Buffer a = take(4096, "flat");
  Buffer v = a.view(0, 100, "weight");
  const Buffer b = take(512, "b");
  v.reset();
  const Buffer late = a.view(0, 50, "late");
  const MemoryPeak peak = memory.peak();
  EXPECT_EQ(own_bytes(peak), 4096U + 512U);
  const LiveBlock* shared = find(peak, "weight");
  ASSERT_NE(shared, nullptr);
  EXPECT_TRUE(shared->shared);
  EXPECT_EQ(shared->bytes, 100U);
  EXPECT_TRUE(shared->freed_event.has_value());
  EXPECT_EQ(find(peak, "late"), nullptr);
}

TEST_F(Peaks, Marks_AreThoseBeforeThePeak) {
  memory.mark_step(4);
  memory.mark_unit(7, "backward", "all_gather");
  Buffer a = take(4096, "a");
  memory.mark_unit(8, "backward", "release");
  memory.mark_step(5);
  a.reset();
  const Buffer b = take(4096, "b");
  const MemoryPeak peak = memory.peak();
  EXPECT_EQ(peak.step, 4);
  EXPECT_EQ(peak.unit, 7);
  EXPECT_EQ(peak.phase, "backward");
  EXPECT_EQ(peak.operation, "all_gather");
  EXPECT_NE(find(peak, "a"), nullptr) << "an equal height later is not a new peak";
}

TEST_F(Peaks, Reset_StartsFromWhatIsLive) {
  Buffer a = take(4096, "a");
  const Buffer b = take(512, "b");
  a.reset();
  memory.reset_peak();
  const MemoryPeak peak = memory.peak();
  EXPECT_EQ(peak.allocated_bytes, 512U);
  ASSERT_EQ(peak.blocks.size(), 1U);
  EXPECT_EQ(peak.blocks[0].name, "b");
}

TEST_F(Peaks, Nothing_IsAPeakOfZero) {
  EXPECT_EQ(memory.peak().allocated_bytes, 0U);
  memory.reset_peak();
  EXPECT_TRUE(memory.peak().blocks.empty());
}

}  // namespace
}  // namespace headroom::test
