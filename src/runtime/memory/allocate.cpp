#include "runtime/core/host_span.hpp"
#include "runtime/memory/allocator_state.hpp"

#include <climits>
#include <utility>

namespace headroom::detail {
namespace {
constexpr int kScanAll = INT_MAX;
}  // namespace

Buffer AllocatorState::allocate(const AllocationRequest& request, StreamRef stream, bool must) {
  const Tag tag = tag_of(request.category, request.state);
  Lock lock(mutex);
  expect_stream(stream);
  note_waits();
  if (pending_first != kNoIndex) sweep_pending(kSweep);
  const bool possible = request.bytes <= capacity_bytes;
  Attempt attempt{possible ? round_up(request.bytes, kGranuleBytes) : request.bytes, stream, request.region};
  const std::uint32_t index = add_allocation(request, attempt.bytes, tag, request.region, stream);
  BlockPool::Index block = BlockPool::kNone;
  try {
    if (possible && attempt.bytes > 0) block = place(lock, attempt);
    if (block == BlockPool::kNone && attempt.bytes > 0) {
      if (must) refuse(attempt, request);
      note_refusal(attempt, request);
    }
    if (block != BlockPool::kNone) arena(request.region).pool.take(block, attempt.bytes, index);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    allocations.remove(index);
    throw;
  }
  if (block == BlockPool::kNone && attempt.bytes > 0) {
    allocations.remove(index);
    return {};
  }
  Allocation& allocation = allocations[index];
  allocation.block = block;
  if (block != BlockPool::kNone) allocation.offset = arena(request.region).pool[block].offset;
  begin_live(index);
  return hand_out(index, address(allocation));
}

Buffer AllocatorState::hand_out(std::uint32_t index, std::byte* data) {
  Buffer buffer;
  buffer.state_ = shared_from_this();
  buffer.data_ = data;
  buffer.bytes_ = allocations[index].requested_bytes;
  buffer.block_ = index;
  buffer.share_ = 0;
  return buffer;
}

/// A free block that the stream may use from here on, in the order that costs least; kNone where all of it cannot help.
BlockPool::Index AllocatorState::place(Lock& lock, Attempt& attempt) {
  bool retried = false;
  for (;;) {
    arena(attempt.region).pool.prepare();
    BlockPool::Index block = find_ready(attempt);
    if (block == BlockPool::kNone && sweep_all()) block = find_ready(attempt);  // they may have coalesced
    if (block == BlockPool::kNone) block = grow(attempt, false);
    if (block == BlockPool::kNone) {
      block = find_any(attempt);
      if (block != BlockPool::kNone) {
        order_after(arena(attempt.region).pool[block].uses, attempt.stream);
        ++stats.waited_reuse;
      }
    }
    if (block == BlockPool::kNone) block = grow(attempt, true);
    if (block != BlockPool::kNone) {
      const BlockPool::Block& found = arena(attempt.region).pool[block];
      if (found.state == BlockPool::State::pending) finish_free(found.owner, backend.now_ns());
      return block;
    }
    if (!fits_after_waiting(attempt)) break;
    if (!std::exchange(retried, true)) ++stats.num_alloc_retries;
    if (!wait_for_oldest(lock, attempt.region) && !return_pages(lock, attempt, missing_bytes(attempt))) break;
  }
  restore(attempt);
  return BlockPool::kNone;
}

BlockPool::Index AllocatorState::find_ready(const Attempt& attempt) const {
  const BlockPool& pool = arena(attempt.region).pool;
  const auto ready = [&](const BlockPool::Block& block) { return ordered(block.uses, attempt.stream.id()); };
  const BlockPool::Index found = pool.find(attempt.bytes, ready);
  // Rather look at every block than take pages that are not needed.
  return found != BlockPool::kNone ? found : pool.find(attempt.bytes, ready, kScanAll);
}

BlockPool::Index AllocatorState::find_any(const Attempt& attempt) const {
  return arena(attempt.region)
      .pool.find(
          attempt.bytes, [](const BlockPool::Block&) { return true; }, kScanAll);
}

void AllocatorState::order_after(const DependencySet& uses, StreamRef stream) {
  const auto wait = [&](StreamId id, Ticket ticket) {
    if (id == stream.id() || ticket == 0 || backend.knows(stream.id(), id) >= ticket) return;
    stream.wait(StreamRef(&backend, id), ticket);
  };
  for (const StreamUse& use : uses.uses()) wait(use.stream, use.ticket);
  for (StreamId id = 0; uses.collapsed() && id < streams.size(); ++id) wait(id, streams[id].ceiling);
  if (backend.waits().count() != waits_seen) log_waits(AllocatorEvent::kOwnWait);
}

/// Blocks for the oldest pending free of the region; false if there is none.
bool AllocatorState::wait_for_oldest(Lock& lock, Region region) {
  std::uint32_t index = pending_first;
  while (index != kNoIndex && (allocations[index].region != region || allocations[index].slot)) {
    index = allocations[index].pending_after;
  }
  if (index == kNoIndex) return false;
  const std::uint64_t id = allocations[index].id;
  const DependencySet uses = allocations[index].uses;
  wait_on_host(lock, uses);
  complete_after_wait(index, id);
  return true;
}

/// The mutex was released: another thread may have ended that free, and may have begun another.
void AllocatorState::complete_after_wait(std::uint32_t allocation, std::uint64_t id) {
  const Allocation& a = allocations[allocation];
  if (a.state == Allocation::State::pending && a.id == id) complete(allocation, DependencySet{});
}

/// Releases the mutex: deferred work that runs meanwhile may free buffers. Rethrows the error of that work.
void AllocatorState::wait_on_host(Lock& lock, const DependencySet& uses) {
  ++stats.host_waits;
  std::vector<StreamUse> waits(uses.uses().begin(), uses.uses().end());
  for (StreamId id = 0; uses.collapsed() && id < streams.size(); ++id) {
    if (streams[id].ceiling > 0) waits.push_back({id, streams[id].ceiling});
  }
  const Window window(*this, lock, AllocatorEvent::Kind::host_wait);
  const HostSpanTimer span(device, HostCause::allocator);
  for (const StreamUse& use : waits) backend.synchronize(use.stream, use.ticket);
}

}  // namespace headroom::detail
