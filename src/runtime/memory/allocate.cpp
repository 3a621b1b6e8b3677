#include "runtime/core/host_span.hpp"
#include "runtime/memory/allocator_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace headroom::detail {
namespace {
constexpr auto kAny = [](const BlockPool::Block&) { return true; };
}  // namespace

Buffer AllocatorState::allocate(const Self& self, const AllocationRequest& request, StreamRef stream, bool must) {
  const Tag tag = tag_of(request.category, request.state);
  Lock lock(mutex);
  if (!asking.empty()) expect_not_asked();
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
    restore(attempt);
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
  begin_live(index, attempt.rung);
  return hand_out(self, index, address(allocation));
}

Buffer AllocatorState::hand_out(const Self& self, std::uint32_t index, std::byte* data) const {
  Buffer buffer;
  buffer.state_ = self;
  buffer.data_ = data;
  buffer.bytes_ = allocations[index].requested_bytes;
  buffer.block_ = index;
  buffer.share_ = 0;
  return buffer;
}

/// A free block that the stream may use from here on, in the order that costs least; kNone where all of it cannot help.
BlockPool::Index AllocatorState::place(Lock& lock, Attempt& attempt) {
  for (;;) {
    arena(attempt.region).pool.prepare();
    const BlockPool::Index block = search(attempt);
    if (block != BlockPool::kNone) return block;
    if (!climb(lock, attempt)) break;
  }
  restore(attempt);
  return BlockPool::kNone;
}

BlockPool::Index AllocatorState::search(Attempt& attempt) {
  const auto ready = [&](const BlockPool::Block& block) { return ordered(block.uses, attempt.stream.id()); };
  const BlockPool::Run run = arena(attempt.region).pool.find(attempt.bytes, ready);
  if (run) return claim(attempt, run, Rung::ready);
  const bool limited = attempt.region == Region::transients && stats.soft_limit_bytes > 0;
  BlockPool::Index block = grow(attempt, limited ? stats.soft_limit_bytes : SIZE_MAX, false);
  if (block == BlockPool::kNone) block = wait_for_block(attempt);
  return block != BlockPool::kNone ? block : grow(attempt, SIZE_MAX, true);
}

BlockPool::Index AllocatorState::wait_for_block(Attempt& attempt) {
  const BlockPool& pool = arena(attempt.region).pool;
  const BlockPool::Run run = pool.find(attempt.bytes, kAny);
  if (!run) return BlockPool::kNone;
  order_after(pool, run, attempt.stream);
  ++stats.waited_reuse;
  return claim(attempt, run, Rung::waited);
}

/// One free block, made of the run.
BlockPool::Index AllocatorState::claim(Attempt& attempt, const BlockPool::Run& run, Rung rung) {
  attempt.rung = std::max(attempt.rung, rung);
  BlockPool& pool = arena(attempt.region).pool;
  end_frees(pool, run);
  return pool.join(run);
}

bool AllocatorState::climb(Lock& lock, Attempt& attempt) {
  if (attempt.asked < callbacks.size() && attempt.bytes <= limit_bytes) {
    ask_callback(lock, attempt);
    return true;
  }
  if (!fits_after_returning(attempt)) return false;
  if (!std::exchange(attempt.retried, true)) ++stats.num_alloc_retries;
  const std::size_t missing = missing_bytes(attempt);
  return return_pages(attempt, missing) || wait_for_pages(lock, attempt, missing);
}

namespace {
/// Says which threads are within a callback. Made and ended with the mutex held.
class Asking {
 public:
  explicit Asking(std::vector<std::thread::id>& threads) : threads_(threads) {
    threads_.push_back(std::this_thread::get_id());
  }
  ~Asking() { threads_.erase(std::ranges::find(threads_, std::this_thread::get_id())); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  std::vector<std::thread::id>& threads_;
};
}  // namespace

void AllocatorState::ask_callback(Lock& lock, Attempt& attempt) {
  const PressureCallback callback = callbacks[attempt.asked++];
  const Asking guard(asking);
  const Window window(*this, lock, AllocatorEvent::Kind::callback);
  if (callback(attempt.bytes)) attempt.rung = std::max(attempt.rung, Rung::callback);
}

void AllocatorState::expect_not_asked() const {
  if (std::ranges::find(asking, std::this_thread::get_id()) == asking.end()) return;
  throw std::logic_error("CachingAllocator: a pressure callback may free buffers, not allocate them");
}

void AllocatorState::order_after(const BlockPool& pool, const BlockPool::Run& run, StreamRef stream) {
  for (BlockPool::Index i = run.first;; i = pool[i].after) {
    order_after(pool[i].uses, stream);
    if (i == run.last) break;
  }
}

void AllocatorState::order_after(const DependencySet& uses, StreamRef stream) {
  const auto wait = [&](StreamId id, Ticket ticket) {
    if (id == stream.id() || ticket == 0 || comes_after(stream.id(), id, ticket)) return;
    auto& waited = stats.waited;
    const auto found = std::ranges::find_if(
        waited, [&](const WaitedReuse& each) { return each.consumer == stream.id() && each.producer == id; });
    const auto pair = static_cast<std::size_t>(found - waited.begin());
    if (pair == waited.size()) waited.reserve(pair + 1);
    stream.wait(StreamRef(&backend, id), reachable(id, ticket));
    if (pair == waited.size()) waited.push_back(WaitedReuse{stream.id(), id, 0});
    ++waited[pair].count;
    log_waits(AllocatorEvent::kOwnWait);
  };
  for (const StreamUse& use : uses.uses()) wait(use.stream, use.ticket);
  for (StreamId id = 0; uses.collapsed() && id < streams.size(); ++id) wait(id, streams[id].ceiling);
}

/// Releases the mutex: deferred work that runs meanwhile may free buffers. Rethrows the error of that work.
void AllocatorState::wait_on_host(Lock& lock, const DependencySet& uses) {
  std::vector<StreamUse> waits;
  for (const StreamUse& use : uses.uses()) waits.push_back({use.stream, reachable(use.stream, use.ticket)});
  for (StreamId id = 0; uses.collapsed() && id < streams.size(); ++id) {
    if (streams[id].ceiling > 0) waits.push_back({id, reachable(id, streams[id].ceiling)});
  }
  ++stats.host_waits;
  {
    const Window window(*this, lock, AllocatorEvent::Kind::host_wait);
    const HostSpanTimer span(device, HostCause::allocator);
    for (const StreamUse& use : waits) backend.synchronize(use.stream, use.ticket);
  }
  log_waits(AllocatorEvent::kOwnWait);
}

}  // namespace headroom::detail
