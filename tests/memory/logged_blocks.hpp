#pragma once

#include <gtest/gtest.h>

#include <map>

#include "headroom/events.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {

/// The blocks that an allocator's log says are taken: replayed from its beginning, event by event.
class LoggedBlocks {
 public:
  void apply(const AllocatorEvent& event) {
    using Kind = AllocatorEvent::Kind;
    std::size_t& mapped = mapped_[static_cast<std::size_t>(event.region)];
    if (event.kind == Kind::segment_map) mapped += event.bytes;
    if (event.kind == Kind::segment_unmap) mapped -= event.bytes;
    if (event.bytes == 0) return;
    if (event.kind == Kind::alloc) {
      EXPECT_TRUE(blocks_.emplace(event.address, event.bytes).second);
    } else if (event.kind == Kind::free_completed) {
      EXPECT_EQ(blocks_.erase(event.address), 1U);
    }
  }

  void expect_those_of(const detail::AllocatorState& state) const {
    std::map<std::uint64_t, std::size_t> taken;
    for (std::size_t r = 0; r < kRegionCount; ++r) {
      const detail::BlockPool& pool = state.arenas[r].pool;
      const auto base = reinterpret_cast<std::uintptr_t>(state.arenas[r].base);
      for (auto i = pool.first(); i != detail::BlockPool::kNone; i = pool[i].after) {
        if (pool[i].state != detail::BlockPool::State::free) taken[base + pool[i].offset] = pool[i].bytes;
      }
      const bool slots = r == static_cast<std::size_t>(Region::communication);
      EXPECT_EQ(mapped_[r], pool.end() + (slots ? state.slot_committed_bytes : 0));
    }
    for (const detail::SlotArea::Range& range : state.slots.ranges()) {
      if (range.state == detail::SlotArea::State::over) continue;
      taken[reinterpret_cast<std::uintptr_t>(state.slot_base) + range.offset] = range.bytes;
    }
    EXPECT_EQ(blocks_, taken);
  }

 private:
  std::map<std::uint64_t, std::size_t> blocks_;  // by address
  std::array<std::size_t, kRegionCount> mapped_{};
};

}  // namespace headroom::test
