#include "runtime/memory/allocator_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <stdexcept>

namespace headroom::detail {

void AllocatorState::commit_slots(std::size_t bytes) {
  Lock lock(mutex);
  if (!asking.empty()) expect_not_asked();
  note_waits();
  if (slots.any_live()) throw std::logic_error("commit_slots: slots are live; free them first");
  Attempt attempt{bytes, StreamRef(&backend, 0), Region::communication};
  attempt.slots = true;
  AllocationRequest request;
  request.bytes = bytes;
  request.category = Category::communication;
  request.name = "slots";
  request.region = Region::communication;
  if (bytes > capacity_bytes) refuse(attempt, request, AllocatorEvent::kSlot);
  const std::size_t wanted = round_up(bytes, page_bytes);
  attempt.bytes = wanted - std::min(wanted, slot_committed_bytes);
  forget_slots(lock);
  bool extended = false;
  try {
    extended = extend_slots(lock, attempt, wanted);
  } catch (...) {
    restore(attempt);
    throw;
  }
  if (!extended) {
    restore(attempt);
    refuse(attempt, request, AllocatorEvent::kSlot);
  }
  if (wanted < slot_committed_bytes) {
    const std::size_t rest = slot_committed_bytes - wanted;
    backend.decommit(slot_base + wanted, rest);
    slot_committed_bytes = wanted;
    note_mapping(AllocatorEvent::Kind::segment_unmap, Region::communication, slot_base + wanted, rest, 0);
  }
  record(AllocatorEvent::Kind::slots).bytes = bytes;
}

bool AllocatorState::extend_slots(Lock& lock, Attempt& attempt, std::size_t wanted) {
  while (wanted > slot_committed_bytes) {
    const std::size_t more = wanted - slot_committed_bytes;
    std::byte* const at = slot_base + slot_committed_bytes;
    if (extend(attempt, at, more)) {
      slot_committed_bytes = wanted;
      note_mapping(AllocatorEvent::Kind::segment_map, Region::communication, at, more, 0);
      return true;
    }
    if (attempt.asked < callbacks.size() && wanted <= limit_bytes) {
      ask_callback(lock, attempt);
      continue;
    }
    const std::size_t possible = headroom_bytes(attempt);
    const std::size_t missing = more > possible ? more - possible : 0;
    if (missing == 0 || missing > returnable_bytes(attempt)) return false;
    if (!return_pages(attempt, missing) && !wait_for_pages(lock, attempt, missing)) return false;
  }
  return true;
}

/// The plan changes: what the old one left behind must be over, not only ordered.
void AllocatorState::forget_slots(Lock& lock) {
  while (!slots.ranges().empty()) {
    const SlotArea::Range range = slots.ranges().front();
    if (range.state == SlotArea::State::live) throw std::logic_error("commit_slots: a slot was taken meanwhile");
    const std::uint64_t id = range.state == SlotArea::State::pending ? allocations[range.allocation].id : 0;
    if (!host_saw(range.uses)) wait_on_host(lock, range.uses);
    if (range.state == SlotArea::State::pending) {  // another thread may have ended that free, and begun another
      const Allocation& a = allocations[range.allocation];
      if (a.state == Allocation::State::pending && a.id == id) complete(range.allocation, DependencySet{});
    }
    if (slots.ranges().empty()) return;
    const SlotArea::Range& now = slots.ranges().front();
    if (now.state == SlotArea::State::over && now.offset == range.offset) slots.forget_first();
  }
}

namespace {
[[noreturn]] void refuse_overlap(const std::string& name, std::size_t offset, std::size_t bytes,
                                 const SlotArea::Range& other, const std::string& other_name, StreamId stream) {
  const char* why =
      other.state == SlotArea::State::live ? "which is live" : "whose last use that stream is not ordered after";
  throw std::logic_error(fmt::format(
      "slot '{}' at [{}, {}) on stream {} overlaps slot '{}' at [{}, {}), {}: the schedule breaks its own plan", name,
      offset, offset + bytes, stream, other_name, other.offset, other.end(), why));
}
}  // namespace

Buffer AllocatorState::allocate_slot(const Self& self, std::size_t offset, const AllocationRequest& request,
                                     StreamRef stream) {
  const Tag tag = tag_of(request.category, request.state);
  const Lock lock(mutex);
  if (!asking.empty()) expect_not_asked();
  expect_stream(stream);
  note_waits();
  const std::string name(request.name);
  if (offset % kGranuleBytes != 0 || offset > slot_committed_bytes || request.bytes > slot_committed_bytes - offset) {
    throw std::logic_error(
        fmt::format("slot '{}' at [{}, +{}) is not within the {} bytes committed for slots, at a multiple of {}", name,
                    offset, request.bytes, slot_committed_bytes, kGranuleBytes));
  }
  const std::size_t bytes = round_up(request.bytes, kGranuleBytes);
  for (const SlotArea::Range& range : slots.overlapping(offset, bytes)) {
    if (range.state == SlotArea::State::live || !ordered(range.uses, stream.id())) {
      refuse_overlap(name, offset, bytes, range, log.names()[range.name], stream.id());
    }
  }
  sweep_pending(kSweep);
  slots.prepare();
  const std::uint32_t index = add_allocation(request, bytes, tag, Region::communication, stream);
  for (const SlotArea::Range& range : slots.overlapping(offset, bytes)) {
    if (range.state == SlotArea::State::pending) complete(range.allocation, DependencySet(range.uses));
  }
  if (bytes > 0) slots.occupy(offset, bytes, index, allocations[index].name);
  allocations[index].slot = true;
  allocations[index].offset = offset;
  begin_live(index, Rung::ready);
  return hand_out(self, index, slot_base + offset);
}

}  // namespace headroom::detail
