#include "runtime/memory/allocator_state.hpp"

#include <algorithm>

namespace headroom::detail {

/// Pages that this attempt may still map.
std::size_t AllocatorState::headroom_bytes(const Attempt& attempt) const noexcept {
  const std::size_t reserved = stats.reserved_bytes.current;
  const std::size_t below_limit = limit_bytes > reserved ? round_down(limit_bytes - reserved, page_bytes) : 0;
  return attempt.device_full ? std::min(below_limit, attempt.returned_bytes) : below_limit;
}

/// Backs [at, at + bytes) if limit and device allow it. Changes nothing otherwise.
bool AllocatorState::extend(Attempt& attempt, std::byte* at, std::size_t bytes) {
  if (bytes > headroom_bytes(attempt)) return false;
  if (!backend.commit(at, bytes)) {
    attempt.device_full = true;
    attempt.returned_bytes = 0;
    return false;
  }
  attempt.returned_bytes -= std::min(attempt.returned_bytes, bytes);
  return true;
}

/// A free block at the region's end, made of new pages and of a free last block where `attempt.stream` is ordered after
/// its uses, or waits for them (`wait`). kNone where limit or device do not allow it.
BlockPool::Index AllocatorState::grow(Attempt& attempt, bool wait) {
  Arena& at = arena(attempt.region);
  const BlockPool::Index last = at.pool.last();
  const bool last_free = last != BlockPool::kNone && at.pool[last].state == BlockPool::State::free;
  const bool ready = last_free && ordered(at.pool[last].uses, attempt.stream.id());
  if (wait && (!last_free || ready)) return BlockPool::kNone;
  const bool join = ready || wait;
  const std::size_t end = at.pool.end();
  const std::size_t bytes = round_up(attempt.bytes - (join ? at.pool[last].bytes : 0), page_bytes);
  if (bytes > capacity_bytes - end || !extend(attempt, at.base + end, bytes)) return BlockPool::kNone;
  if (wait) {
    order_after(at.pool[last].uses, attempt.stream);
    ++stats.waited_reuse;
  }
  const BlockPool::Index block = at.pool.grow(bytes, join);
  note_mapping(AllocatorEvent::Kind::segment_map, attempt.region, at.base + end, bytes, attempt.stream.id());
  return block;
}

/// Pages short of what the region needs at its end once its pending frees are over; 0 if it needs none.
std::size_t AllocatorState::missing_bytes(const Attempt& attempt) const noexcept {
  const std::size_t last = arena(attempt.region).pool.last_run_bytes();
  if (last >= attempt.bytes) return 0;
  const std::size_t needed = round_up(attempt.bytes - last, page_bytes);
  const std::size_t possible = headroom_bytes(attempt);
  return needed > possible ? needed - possible : 0;
}

/// Whole pages at the ends of the other regions that are free, or will be.
std::size_t AllocatorState::returnable_bytes(const Attempt& attempt) const noexcept {
  std::size_t bytes = 0;
  for (int r = 0; r < kRegionCount; ++r) {
    if (static_cast<Region>(r) == attempt.region) continue;
    const BlockPool& pool = arena(static_cast<Region>(r)).pool;
    bytes += round_down(pool.last_run_bytes(), page_bytes);
  }
  return bytes;
}

/// True where the request would be served if all frees that were requested were over: waiting is not in vain.
bool AllocatorState::fits_after_waiting(const Attempt& attempt) const noexcept {
  const BlockPool& pool = arena(attempt.region).pool;
  if (pool.longest_run_bytes() >= attempt.bytes) return true;
  const std::size_t grown = round_up(attempt.bytes - pool.last_run_bytes(), page_bytes);
  return grown <= capacity_bytes - pool.end() && missing_bytes(attempt) <= returnable_bytes(attempt);
}

bool AllocatorState::return_pages(Lock& lock, Attempt& attempt, std::size_t bytes) {
  bool any = false;
  for (int r = kRegionCount - 1; r >= 0 && bytes > 0; --r) {
    const auto region = static_cast<Region>(r);
    if (region == attempt.region) continue;
    BlockPool& pool = arena(region).pool;
    const std::size_t part = std::min(bytes, round_down(pool.last_run_bytes(), page_bytes));
    if (part == 0) continue;
    const std::size_t cut = pool.end() - part;
    for (BlockPool::Index i = pool.last(); i != BlockPool::kNone && pool[i].offset + pool[i].bytes > cut;
         i = pool[i].before) {
      if (pool[i].uses.empty()) continue;  // the host has seen their end, or there never were any
      const DependencySet uses = pool[i].uses;
      const bool pending = pool[i].state == BlockPool::State::pending;
      const std::uint32_t owner = pool[i].owner;
      const std::uint64_t id = pending ? allocations[owner].id : 0;
      wait_on_host(lock, uses);
      if (pending) {
        complete_after_wait(owner, id);
      } else if (pool[i].state == BlockPool::State::free && pool[i].uses == uses) {
        pool.settle(i);
      }
      return true;  // the pool may have changed meanwhile: search again
    }
    unmap(region, arena(region).base + cut, part, attempt.stream.id());
    attempt.returned.push_back({region, part});
    attempt.returned_bytes += part;
    bytes -= part;
    any = true;
  }
  return any;
}

void AllocatorState::unmap(Region region, std::byte* at, std::size_t bytes, StreamId stream) {
  backend.decommit(at, bytes);
  arena(region).pool.shrink(bytes);
  note_mapping(AllocatorEvent::Kind::segment_unmap, region, at, bytes, stream);
}

/// Takes back what a failed attempt returned, as far as the device still has it.
void AllocatorState::restore(const Attempt& attempt) {
  for (auto part = attempt.returned.rbegin(); part != attempt.returned.rend(); ++part) {
    Arena& at = arena(part->region);
    const std::size_t end = at.pool.end();
    if (limit_bytes - stats.reserved_bytes.current < part->bytes) return;
    if (!backend.commit(at.base + end, part->bytes)) return;
    const BlockPool::Index last = at.pool.last();
    at.pool.grow(part->bytes, last != BlockPool::kNone && at.pool[last].state == BlockPool::State::free);
    note_mapping(AllocatorEvent::Kind::segment_map, part->region, at.base + end, part->bytes, attempt.stream.id());
  }
}

}  // namespace headroom::detail
