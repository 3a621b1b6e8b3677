#include "runtime/memory/allocator_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

namespace headroom::detail {
namespace {

void require(bool holds, const char* invariant) {
  if (!holds) throw std::logic_error(fmt::format("allocator: {}", invariant));
}

void require_equal(std::size_t counted, std::size_t recomputed, const char* counter) {
  if (counted != recomputed) {
    throw std::logic_error(fmt::format("allocator: {} is {}, but recomputed {}", counter, counted, recomputed));
  }
}

void mix(std::uint64_t& hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 29U;
}

void mix(std::uint64_t& hash, const DependencySet& uses) noexcept {
  mix(hash, uses.collapsed() ? 1 : 0);
  for (const StreamUse& use : uses.uses()) {
    mix(hash, use.stream);
    mix(hash, use.ticket);
  }
}

}  // namespace

void AllocatorState::check() const {
  const Lock lock(mutex);
  for (const Arena& each : arenas) each.pool.check();
  slots.check(slot_committed_bytes);
  check_blocks();
  check_allocations();
  check_statistics();
  check_detached();
}

/// Every used or pending block belongs to the allocation that says so.
void AllocatorState::check_blocks() const {
  for (int r = 0; r < kRegionCount; ++r) {
    const BlockPool& pool = arena(static_cast<Region>(r)).pool;
    require(pool.end() <= capacity_bytes && pool.end() % page_bytes == 0, "a region is not whole pages");
    for (BlockPool::Index i = pool.first(); i != BlockPool::kNone; i = pool[i].after) {
      if (pool[i].state == BlockPool::State::free) continue;
      const Allocation& a = allocations[pool[i].owner];
      const bool live = pool[i].state == BlockPool::State::used;
      require(a.state == (live ? Allocation::State::live : Allocation::State::pending), "a block's owner is not there");
      require(a.block == i && a.offset == pool[i].offset && a.bytes == pool[i].bytes && !a.slot &&
                  a.region == static_cast<Region>(r),
              "a block and its owner disagree");
      require(live || a.uses == pool[i].uses, "a pending block and its owner wait for different work");
      require(!live || came_after(pool[i].uses, a.stream), "a block was handed out before its last use was ordered");
    }
  }
  for (const SlotArea::Range& range : slots.ranges()) {
    if (range.state == SlotArea::State::over) continue;
    const Allocation& a = allocations[range.allocation];
    const bool live = range.state == SlotArea::State::live;
    require(a.slot && a.state == (live ? Allocation::State::live : Allocation::State::pending) &&
                a.offset == range.offset && a.bytes == range.bytes && a.region == Region::communication,
            "a slot and its owner disagree");
    require(!live || came_after(range.uses, a.stream), "a slot was handed out before its last use was ordered");
  }
}

/// Whether work of the stream comes after the uses, or the host has seen their end. What a collapsed set meant when the
/// block was handed out cannot be told later.
bool AllocatorState::came_after(const DependencySet& uses, StreamId stream) const {
  return uses.collapsed() || ordered(uses, stream) || host_saw(uses);
}

/// Every detached pointer that is not freed names a live allocation that begins there.
void AllocatorState::check_detached() const {
  for (const auto& [pointer, entry] : detached) {
    if (entry.freed) continue;
    const Allocation& a = allocations[entry.allocation];
    require(a.state == Allocation::State::live && a.id == entry.id && address(a) == pointer && a.shares == 1,
            "a detached pointer and its allocation disagree");
  }
}

/// Every allocation has its place, the pending ones are in the list, and views belong to live ones.
void AllocatorState::check_allocations() const {
  std::size_t pending = 0, listed = 0;
  std::vector<std::uint32_t> shares(allocations.size(), 0);
  for (std::uint32_t i = 0; i < views.size(); ++i) {
    if (views[i].allocation == kNoIndex) continue;
    const Allocation& a = allocations[views[i].allocation];
    ++shares[views[i].allocation];
    require(a.state == Allocation::State::live, "a view of a storage that is gone");
    require(views[i].offset + views[i].bytes <= a.requested_bytes, "a view leaves its storage");
  }
  for (std::uint32_t i = 0; i < allocations.size(); ++i) {
    const Allocation& a = allocations[i];
    if (a.state == Allocation::State::unused) continue;
    if (a.state == Allocation::State::pending) ++pending;
    require(a.bytes >= a.requested_bytes && a.bytes % kGranuleBytes == 0, "an allocation is not whole granules");
    require((a.state == Allocation::State::pending ? 0 : a.shares) >= shares[i], "a share is counted wrongly");
    require(a.shares <= shares[i] + 1, "a share is lost");
    if (a.bytes == 0) continue;
    const bool placed = a.slot ? slots.at(a.offset).allocation == i
                               : a.block != BlockPool::kNone && arena(a.region).pool[a.block].owner == i;
    require(placed, "an allocation has no place");
  }
  for (std::uint32_t i = pending_first; i != kNoIndex; i = allocations[i].pending_after) {
    require(allocations[i].state == Allocation::State::pending, "the list of pending frees is broken");
    ++listed;
  }
  require_equal(listed, pending, "the number of pending frees");
}

void AllocatorState::check_statistics() const {
  std::size_t live = 0, active = 0, reserved = slot_committed_bytes;
  std::size_t live_bytes = 0, pending_bytes = 0, requested = 0;
  TagBytes tags{};
  std::array<std::size_t, kRegionCount> by_region{};
  for (std::uint32_t i = 0; i < allocations.size(); ++i) {
    const Allocation& a = allocations[i];
    if (a.state == Allocation::State::unused) continue;
    ++active;
    requested += a.requested_bytes;
    if (a.state == Allocation::State::pending) {
      pending_bytes += a.bytes;
      continue;
    }
    ++live;
    live_bytes += a.bytes;
    tags[static_cast<std::size_t>(a.tag)] += a.bytes;
    by_region[static_cast<std::size_t>(a.region)] += a.bytes;
  }
  for (std::size_t r = 0; r < arenas.size(); ++r) {
    const std::size_t slot_bytes = r == static_cast<std::size_t>(Region::communication) ? slot_committed_bytes : 0;
    reserved += arenas[r].pool.end();
    require_equal(stats.regions[r].allocated_bytes.current, by_region[r], "allocated_bytes of a region");
    require_equal(stats.regions[r].reserved_bytes.current, arenas[r].pool.end() + slot_bytes, "reserved of a region");
  }
  require_equal(stats.allocation.current, live, "allocation");
  require_equal(stats.active.current, active, "active");
  require_equal(stats.allocated_bytes.current, live_bytes, "allocated_bytes");
  require_equal(stats.active_bytes.current, live_bytes + pending_bytes, "active_bytes");
  require_equal(stats.pending_free_bytes.current, pending_bytes, "pending_free_bytes");
  require_equal(stats.requested_bytes.current, requested, "requested_bytes");
  require_equal(stats.reserved_bytes.current, reserved, "reserved_bytes");
  require(tags == stats.tag_bytes, "bytes by category do not sum to allocated_bytes");
  require(reserved <= limit_bytes, "reserved_bytes exceeds the limit");
  require(stats.active_bytes.current <= reserved, "active_bytes exceeds reserved_bytes");
  std::uint64_t served = 0, waits = 0;
  for (const std::uint64_t count : stats.rungs) served += count;
  for (const WaitedReuse& pair : stats.waited) waits += pair.count;
  require_equal(served, stats.allocation.allocated, "the sum of the rungs");
  require_equal(served, next_id, "the number of allocations");
  require(waits >= stats.waited_reuse, "waits for reuse are counted, but not by stream");
  for (const RegionStatistics& region : stats.regions) {
    for (const Metric& m : {region.allocated_bytes, region.reserved_bytes}) {
      require(m.peak >= m.current && m.allocated - m.freed == m.current, "a region's peak or sums are wrong");
    }
  }
  for (const Metric& m : {stats.allocation, stats.allocated_bytes, stats.requested_bytes, stats.active,
                          stats.active_bytes, stats.reserved_bytes, stats.pending_free_bytes}) {
    require(m.peak >= m.current && m.allocated - m.freed == m.current, "a metric's peak or sums are wrong");
  }
}

std::uint64_t AllocatorState::hash() const {
  const Lock lock(mutex);
  std::uint64_t hash = 0x51ED270B;
  for (const Arena& each : arenas) mix(hash, each.pool.end());
  mix(hash, slot_committed_bytes);
  for (std::uint32_t i = 0; i < allocations.size(); ++i) {
    const Allocation& a = allocations[i];
    if (a.state != Allocation::State::live) continue;
    const auto place = reinterpret_cast<std::uintptr_t>(address(a));
    for (const std::uint64_t value : {std::uint64_t{i}, a.id, std::uint64_t{place}, std::uint64_t{a.bytes},
                                      std::uint64_t{a.requested_bytes}, std::uint64_t{a.name}, std::uint64_t{a.shares},
                                      static_cast<std::uint64_t>(a.tag), static_cast<std::uint64_t>(a.unit)}) {
      mix(hash, value);
    }
    mix(hash, a.uses);
  }
  for (std::uint32_t i = 0; i < views.size(); ++i) {
    mix(hash, views[i].allocation);
    mix(hash, views[i].offset);
    mix(hash, views[i].bytes);
  }
  mix(hash, next_id);
  std::uint64_t pointers = 0;  // in no order
  for (const auto& [pointer, entry] : detached) {
    std::uint64_t one = reinterpret_cast<std::uintptr_t>(pointer);
    mix(one, entry.id * 2 + (entry.freed ? 1 : 0));
    pointers += one;
  }
  mix(hash, pointers);
  return hash;
}

}  // namespace headroom::detail
