#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "headroom/memory_statistics.hpp"

namespace headroom::test {

/// As sets: an allocator lists blocks in the order of its records. Of equal views of one storage, the log does not tell
/// which one went; empty ones are left out.
inline void expect_equal(const MemoryPeak& found, const MemoryPeak& expected) {
  EXPECT_EQ(found.event, expected.event);
  EXPECT_EQ(found.step, expected.step);
  EXPECT_EQ(found.allocated_bytes, expected.allocated_bytes);
  EXPECT_EQ(found.tag_bytes, expected.tag_bytes);
  EXPECT_EQ(found.unit, expected.unit);
  EXPECT_EQ(found.phase, expected.phase);
  EXPECT_EQ(found.operation, expected.operation);
  using Key = std::tuple<std::uint64_t, std::string, int, Tag, std::size_t, std::optional<std::uint64_t>>;
  const auto keys = [](const MemoryPeak& peak) {
    std::vector<Key> result;
    for (const LiveBlock& block : peak.blocks) {
      if (block.shared && block.bytes == 0) continue;
      const std::uint64_t begin = block.shared ? UINT64_MAX : block.allocated_event;
      result.emplace_back(begin, block.name, block.unit, block.tag, block.bytes,
                          block.shared ? std::nullopt : block.freed_event);
    }
    std::ranges::sort(result);
    return result;
  };
  EXPECT_TRUE(keys(found) == keys(expected)) << "the blocks at the peak differ";
}

/// The log alone tells what the allocator counts.
inline void expect_equal(const MemoryStatistics& folded, const MemoryStatistics& s) {
  const auto equal = [](const Metric& a, const Metric& b) {
    return a.peak == b.peak && a.current == b.current && a.allocated == b.allocated && a.freed == b.freed;
  };
  ASSERT_TRUE(equal(folded.allocation, s.allocation));
  ASSERT_TRUE(equal(folded.allocated_bytes, s.allocated_bytes));
  ASSERT_TRUE(equal(folded.requested_bytes, s.requested_bytes));
  ASSERT_TRUE(equal(folded.active, s.active));
  ASSERT_TRUE(equal(folded.active_bytes, s.active_bytes));
  ASSERT_TRUE(equal(folded.reserved_bytes, s.reserved_bytes));
  ASSERT_TRUE(equal(folded.pending_free_bytes, s.pending_free_bytes));
  for (std::size_t i = 0; i < kRegionCount; ++i) {
    ASSERT_TRUE(equal(folded.regions[i].allocated_bytes, s.regions[i].allocated_bytes)) << "region " << i;
    ASSERT_TRUE(equal(folded.regions[i].reserved_bytes, s.regions[i].reserved_bytes)) << "region " << i;
  }
  ASSERT_EQ(folded.tag_bytes, s.tag_bytes);
  ASSERT_EQ(folded.cached_bytes, s.cached_bytes);
  ASSERT_EQ(folded.num_ooms, s.num_ooms);
  ASSERT_EQ(folded.num_device_alloc, s.num_device_alloc);
  ASSERT_EQ(folded.num_device_free, s.num_device_free);
  ASSERT_EQ(folded.rungs, s.rungs);
  ASSERT_EQ(folded.host_waits, s.host_waits);
  ASSERT_EQ(folded.waited.size(), s.waited.size());
  for (std::size_t i = 0; i < s.waited.size(); ++i) {
    ASSERT_EQ(folded.waited[i].consumer, s.waited[i].consumer);
    ASSERT_EQ(folded.waited[i].producer, s.waited[i].producer);
    ASSERT_EQ(folded.waited[i].count, s.waited[i].count);
  }
}

}  // namespace headroom::test
