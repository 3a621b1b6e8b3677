#include "runtime/memory/allocator_state.hpp"

#include <algorithm>
#include <utility>

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

/// The run is that of blocks whose uses `attempt.stream` is ordered after, or, with `wait`, will be.
BlockPool::Index AllocatorState::grow(Attempt& attempt, std::size_t ceiling, bool wait) {
  Arena& at = arena(attempt.region);
  bool waits = false;
  const auto fits = [&](const BlockPool::Block& block) {
    const bool ready = ordered(block.uses, attempt.stream.id());
    waits = waits || (wait && !ready);
    return wait || ready;
  };
  const BlockPool::Run before = at.pool.last_run(fits);
  const std::size_t end = at.pool.end();
  if (before.bytes >= attempt.bytes) return BlockPool::kNone;  // another thread's wait made it ready: search again
  const std::size_t bytes = round_up(attempt.bytes - before.bytes, page_bytes);
  if (end > ceiling || bytes > ceiling - end || bytes > capacity_bytes - end) return BlockPool::kNone;
  if (!extend(attempt, at.base + end, bytes)) return BlockPool::kNone;
  if (waits) {
    try {
      order_after(at.pool, before, attempt.stream);
    } catch (...) {
      backend.decommit(at.base + end, bytes);
      throw;
    }
    ++stats.waited_reuse;
  }
  at.pool.grow(bytes);
  note_mapping(AllocatorEvent::Kind::segment_map, attempt.region, at.base + end, bytes, attempt.stream.id());
  return claim(attempt, at.pool.last_run(fits), waits ? Rung::waited : Rung::grown);
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
    if (!attempt.takes_from(static_cast<Region>(r))) continue;
    const BlockPool& pool = arena(static_cast<Region>(r)).pool;
    bytes += round_down(pool.last_run_bytes(), page_bytes);
  }
  return bytes;
}

/// True where the request would be served if the other regions gave back all that is free there, or will be.
bool AllocatorState::fits_after_returning(const Attempt& attempt) const noexcept {
  const BlockPool& pool = arena(attempt.region).pool;
  const std::size_t last = pool.last_run_bytes();
  const std::size_t grown = last >= attempt.bytes ? 0 : round_up(attempt.bytes - last, page_bytes);
  return grown <= capacity_bytes - pool.end() && missing_bytes(attempt) <= returnable_bytes(attempt);
}

bool AllocatorState::host_saw(const DependencySet& uses) const {
  for (const StreamUse& use : uses.uses()) {
    if (backend.seen(use.stream) < use.ticket) return false;
  }
  for (StreamId id = 0; uses.collapsed() && id < streams.size(); ++id) {
    if (backend.seen(id) < streams[id].ceiling) return false;
  }
  return true;
}

std::size_t AllocatorState::seen_bytes(Region region) const {
  const BlockPool& pool = arena(region).pool;
  return round_down(pool.last_run([&](const BlockPool::Block& block) { return host_saw(block.uses); }).bytes,
                    page_bytes);
}

bool AllocatorState::return_pages(Attempt& attempt, std::size_t bytes) {
  std::size_t returned = 0;
  for (int r = kRegionCount - 1; r >= 0 && returned < bytes; --r) {
    const auto region = static_cast<Region>(r);
    if (!attempt.takes_from(region)) continue;
    const std::size_t part = std::min(bytes - returned, seen_bytes(region));
    if (part == 0) continue;
    arena(region).pool.prepare();  // for restore()
    attempt.returned.push_back({region, part});
    give_back(region, part, attempt.stream.id());
    attempt.returned_bytes += part;
    returned += part;
  }
  if (returned > 0) attempt.rung = std::max(attempt.rung, Rung::returned);
  return returned > 0;
}

/// Blocks until the uses of one block at a region's end are over: the last one that the host has not seen the end of.
bool AllocatorState::wait_for_pages(Lock& lock, Attempt& attempt, std::size_t bytes) {
  for (int r = kRegionCount - 1; r >= 0 && bytes > 0; --r) {
    const auto region = static_cast<Region>(r);
    if (!attempt.takes_from(region)) continue;
    BlockPool& pool = arena(region).pool;
    const std::size_t cut = pool.end() - std::min(bytes, round_down(pool.last_run_bytes(), page_bytes));
    BlockPool::Index i = pool.last();
    while (i != BlockPool::kNone && pool[i].offset + pool[i].bytes > cut && host_saw(pool[i].uses)) i = pool[i].before;
    if (i == BlockPool::kNone || pool[i].offset + pool[i].bytes <= cut) continue;
    const DependencySet uses = pool[i].uses;
    wait_on_host(lock, uses);
    attempt.rung = Rung::host_waited;
    // The mutex was released: another thread may have taken the block.
    if (pool[i].state != BlockPool::State::used && pool[i].uses == uses) {
      if (pool[i].state == BlockPool::State::pending) finish_free(pool[i].owner, now());
      pool.settle(i);
    }
    return true;  // the pools may have changed meanwhile: search again
  }
  return false;
}

/// Unmaps the last `bytes` of the region, which seen_bytes() counts.
void AllocatorState::give_back(Region region, std::size_t bytes, StreamId stream) {
  Arena& from = arena(region);
  const std::size_t cut = from.pool.end() - bytes;
  const BlockPool::Run run =
      from.pool.last_run([&](const BlockPool::Block& block) { return block.offset + block.bytes > cut; });
  end_frees(from.pool, run);
  from.pool.settle(from.pool.join(run));
  backend.decommit(from.base + cut, bytes);
  from.pool.shrink(bytes);
  note_mapping(AllocatorEvent::Kind::segment_unmap, region, from.base + cut, bytes, stream);
}

/// Takes back what a failed attempt returned, as far as the device still has it.
void AllocatorState::restore(Attempt& attempt) {
  const std::vector<Attempt::Returned> returned = std::move(attempt.returned);
  attempt.returned.clear();
  for (auto part = returned.rbegin(); part != returned.rend(); ++part) {
    Arena& at = arena(part->region);
    const std::size_t end = at.pool.end();
    if (limit_bytes - stats.reserved_bytes.current < part->bytes || part->bytes > capacity_bytes - end) return;
    if (!backend.commit(at.base + end, part->bytes)) return;
    at.pool.grow(part->bytes);
    note_mapping(AllocatorEvent::Kind::segment_map, part->region, at.base + end, part->bytes, attempt.stream.id());
  }
}

void AllocatorState::trim() {
  const Lock lock(mutex);
  note_waits();
  std::array<std::size_t, kRegionCount> bytes{};
  std::size_t sum = 0;
  for (std::size_t r = 0; r < bytes.size(); ++r) sum += bytes[r] = seen_bytes(static_cast<Region>(r));
  record(AllocatorEvent::Kind::trim).bytes = sum;
  for (std::size_t r = 0; r < bytes.size(); ++r) {
    if (bytes[r] > 0) give_back(static_cast<Region>(r), bytes[r], 0);
  }
}

/// A step begins. What the transients reserve in the second and third is what later ones are expected to need.
void AllocatorState::learn_step() {
  constexpr int kFirst = 2, kLast = 4;
  if (steps_marked == kLast) return;
  ++steps_marked;
  const std::size_t reserved = arena(Region::transients).pool.end();
  if (steps_marked == kFirst) step_reserved = reserved;
  if (steps_marked == kLast) stats.soft_limit_bytes = step_reserved;
}

}  // namespace headroom::detail
