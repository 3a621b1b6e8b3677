#include "runtime/memory/allocator_state.hpp"

#include <algorithm>
#include <stdexcept>

namespace headroom::detail {

void AllocatorState::release(std::uint32_t allocation, std::uint32_t share) noexcept {
  const Lock lock(mutex);
  note_waits();
  const std::int64_t now_ns = now();
  settle_peak();
  Allocation& a = allocations[allocation];
  const bool last = --a.shares == 0;
  if (share != 0 || !last) {
    AllocatorEvent& drop = record(AllocatorEvent::Kind::view_drop, a, now_ns);
    drop.bytes = drop.requested_bytes = share != 0 ? views[share - 1].bytes : a.requested_bytes;
    if (share != 0) {
      drop.address += views[share - 1].offset;
      drop.name = views[share - 1].name;
    }
    if (share != 0) {
      peaks.freed(views[share - 1].peak_row, drop.number);
      views.remove(share - 1);
    }
  }
  if (!last) return;
  const DependencySet uses = marks_of(a);
  const bool pending = a.bytes > 0 && !ordered(uses, a.stream);
  decrease(stats.allocation, 1);
  decrease(stats.allocated_bytes, a.bytes);
  decrease(stats.regions[static_cast<std::size_t>(a.region)].allocated_bytes, a.bytes);
  stats.tag_bytes[static_cast<std::size_t>(a.tag)] -= a.bytes;
  increase(stats.pending_free_bytes, pending ? a.bytes : 0);
  log_uses(a, uses, now_ns);
  AllocatorEvent& event = record(AllocatorEvent::Kind::free_requested, a, now_ns);
  if (pending) event.flags |= AllocatorEvent::kPending;
  event.ticket = uses.collapsed() ? streams[a.stream].ceiling : uses.ticket_of(a.stream);
  peaks.freed(a.peak_row, event.number);
  if (a.block != BlockPool::kNone) arena(a.region).pool.release(a.block, uses, pending);
  if (a.slot && a.bytes > 0) slots.release(a.offset, uses, pending);
  if (!pending) {
    finish_free(allocation, now_ns);
    return;
  }
  a.uses = uses;
  a.state = Allocation::State::pending;
  link_pending(allocation);
}

DependencySet AllocatorState::marks_of(const Allocation& allocation) {
  DependencySet marks;
  for (const StreamUse& use : allocation.uses.uses()) {
    const bool known = use.ticket != 0 && use.ticket != kUntilFreed;
    marks.add(use.stream, known ? raise_ceiling(use.stream, use.ticket) : mark_of(use.stream));
  }
  if (allocation.uses.collapsed()) {
    for (StreamId id = 0; id < streams.size(); ++id) {
      if (streams[id].issued != nullptr) static_cast<void>(mark_of(id));  // for the ceiling
    }
    marks.collapse();
  }
  return marks;
}

/// Where the device cannot give a ticket now: the next one, which whoever waits for it can still make.
Ticket AllocatorState::mark_of(StreamId stream) noexcept {
  Ticket ticket = streams[stream].issued->load(std::memory_order_acquire);
  try {
    ticket = backend.mark(stream);
  } catch (const std::logic_error&) {  // destroyed, hence drained: no later work to cover
  } catch (...) {
    ++ticket;
  }
  return raise_ceiling(stream, ticket);
}

Ticket AllocatorState::reachable(StreamId stream, Ticket ticket) {
  const Ticket issued = streams[stream].issued->load(std::memory_order_acquire);
  if (ticket <= issued) return ticket;
  try {
    return backend.mark(stream);
  } catch (const std::logic_error&) {
    return issued;
  }
}

Ticket AllocatorState::raise_ceiling(StreamId stream, Ticket ticket) noexcept {
  streams[stream].ceiling = std::max(streams[stream].ceiling, ticket);
  return ticket;
}

void AllocatorState::finish_free(std::uint32_t allocation, std::int64_t now_ns) {
  const Allocation& a = allocations[allocation];
  if (a.state == Allocation::State::pending) {
    unlink_pending(allocation);
    decrease(stats.pending_free_bytes, a.bytes);
  }
  decrease(stats.active, 1);
  decrease(stats.active_bytes, a.bytes);
  decrease(stats.requested_bytes, a.requested_bytes);
  record(AllocatorEvent::Kind::free_completed, a, now_ns);
  allocations.remove(allocation);
}

void AllocatorState::complete(std::uint32_t allocation, const DependencySet& uses) {
  const Allocation& a = allocations[allocation];
  if (a.slot) {
    slots.complete(a.offset, uses);
  } else {
    arena(a.region).pool.complete(a.block, uses);
  }
  finish_free(allocation, now());
}

/// The frees of the run's pending blocks end; the caller makes the blocks free.
void AllocatorState::end_frees(const BlockPool& pool, const BlockPool::Run& run) {
  for (BlockPool::Index i = run.first;; i = pool[i].after) {
    if (pool[i].state == BlockPool::State::pending) finish_free(pool[i].owner, now());
    if (i == run.last) return;
  }
}

/// Ends those frees, of at most `limit` looked at in turn, whose uses their own stream is ordered after by now.
void AllocatorState::sweep_pending(std::size_t limit) {
  std::uint32_t index = sweep_next != kNoIndex ? sweep_next : pending_first;
  while (index != kNoIndex && limit-- > 0) {
    const Allocation& a = allocations[index];
    const std::uint32_t after = a.pending_after;
    if (ordered(a.uses, a.stream)) complete(index, DependencySet(a.uses));
    index = after;
  }
  sweep_next = index;
}

void AllocatorState::link_pending(std::uint32_t allocation) noexcept {
  allocations[allocation].pending_before = pending_last;
  (pending_last != kNoIndex ? allocations[pending_last].pending_after : pending_first) = allocation;
  pending_last = allocation;
}

void AllocatorState::unlink_pending(std::uint32_t allocation) noexcept {
  const Allocation& a = allocations[allocation];
  if (sweep_next == allocation) sweep_next = a.pending_after;
  (a.pending_before != kNoIndex ? allocations[a.pending_before].pending_after : pending_first) = a.pending_after;
  (a.pending_after != kNoIndex ? allocations[a.pending_after].pending_before : pending_last) = a.pending_before;
}

}  // namespace headroom::detail
