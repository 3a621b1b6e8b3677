#include "runtime/memory/allocator_state.hpp"

#include <algorithm>
#include <stdexcept>

namespace headroom::detail {

AllocatorState::AllocatorState(const Device& on, const AllocatorOptions& options)
    : device(on),
      backend(on.backend()),
      page_bytes(backend.page_bytes()),
      log(options.event_capacity),
      waits_seen(backend.waits().count()) {
  const std::size_t total = backend.memory_info().total_bytes;
  limit_bytes = options.limit_bytes == 0 ? total : options.limit_bytes;
  capacity_bytes = std::max(round_down(std::min(limit_bytes, total), page_bytes), page_bytes);
  try {
    for (Arena& each : arenas) each.base = backend.reserve(capacity_bytes);
    slot_base = backend.reserve(capacity_bytes);
  } catch (...) {
    for (const Arena& each : arenas) {
      if (each.base != nullptr) backend.unreserve(each.base, capacity_bytes);
    }
    throw;
  }
  fresh_waits.reserve(WaitLog::kKept);
}

AllocatorState::~AllocatorState() {
  // Freed in stream order, the storage may still be in use; errors of that work belong to whoever synchronizes next.
  for (StreamId stream = 0; stream < streams.size(); ++stream) {
    if (streams[stream].ceiling == 0) continue;
    Ticket last = streams[stream].issued->load(std::memory_order_acquire);
    try {
      last = reachable(stream, streams[stream].ceiling);
    } catch (...) {  // no ticket for what others enqueued: what Headroom did is known
    }
    HostWork work;
    work.poll = [this, stream, last] { return backend.complete(stream, last) ? Progress::done : Progress::blocked; };
    if (!backend.complete(stream, last)) backend.host_wait(work);
  }
  for (const Arena& each : arenas) {
    if (each.pool.end() > 0) backend.decommit(each.base, each.pool.end());
    backend.unreserve(each.base, capacity_bytes);
  }
  if (slot_committed_bytes > 0) backend.decommit(slot_base, slot_committed_bytes);
  backend.unreserve(slot_base, capacity_bytes);
}

void AllocatorState::expect_stream(StreamRef stream) {
  if (&stream.backend() != &backend) {
    throw std::logic_error("stream " + std::to_string(stream.id()) + " is not of this allocator's device, " +
                           backend.name());
  }
  if (streams.size() <= stream.id()) streams.resize(stream.id() + std::size_t{1});
  StreamRecord& known_stream = streams[stream.id()];
  if (known_stream.issued == nullptr) known_stream.issued = &backend.issued_counter(stream.id());
}

bool AllocatorState::ordered_after_others(const DependencySet& uses, StreamId stream) const {
  for (const StreamUse& use : uses.uses()) {
    if (use.stream != stream && !comes_after(stream, use.stream, use.ticket)) return false;
  }
  if (!uses.collapsed()) return true;
  for (StreamId id = 0; id < streams.size(); ++id) {
    if (id != stream && streams[id].ceiling > 0 && !comes_after(stream, id, streams[id].ceiling)) return false;
  }
  return true;
}

/// What a stream comes after never falls, and rises only with another wait, or the end of the other stream.
bool AllocatorState::comes_after(StreamId stream, StreamId producer, Ticket ticket) const {
  if (stream >= kKnown || producer >= kKnown) return backend.knows(stream, producer) >= ticket;
  Known& entry = known_order[stream][producer];
  if (entry.ticket >= ticket) return true;
  const std::uint64_t version = backend.waits().version();
  if (entry.version == version) return false;
  entry.version = version;
  entry.ticket = backend.knows(stream, producer);
  return entry.ticket >= ticket;
}

std::uint32_t AllocatorState::add_allocation(const AllocationRequest& request, std::size_t bytes, Tag tag,
                                             Region region, StreamRef stream) {
  const std::uint32_t name = log.intern(request.name);
  peaks.prepare(std::size_t{allocations.size()} + views.size() + 1);
  const std::uint32_t index = allocations.add();
  Allocation& allocation = allocations[index];
  allocation.bytes = bytes;
  allocation.requested_bytes = request.bytes;
  allocation.uses.add(stream.id(), 0);
  allocation.name = name;
  allocation.unit = request.unit;
  allocation.stream = stream.id();
  allocation.region = region;
  allocation.tag = tag;
  return index;
}

void AllocatorState::begin_live(std::uint32_t index, Rung rung) {
  Allocation& allocation = allocations[index];
  allocation.state = Allocation::State::live;
  allocation.id = next_id++;
  increase(stats.allocation, 1);
  increase(stats.active, 1);
  const bool highest = stats.allocated_bytes.current + allocation.bytes > stats.allocated_bytes.peak;
  increase(stats.allocated_bytes, allocation.bytes);
  increase(stats.active_bytes, allocation.bytes);
  increase(stats.requested_bytes, allocation.requested_bytes);
  increase(stats.regions[static_cast<std::size_t>(allocation.region)].allocated_bytes, allocation.bytes);
  stats.tag_bytes[static_cast<std::size_t>(allocation.tag)] += allocation.bytes;
  ++stats.rungs[static_cast<std::size_t>(rung)];
  AllocatorEvent& event = record(AllocatorEvent::Kind::alloc, allocation, now());
  event.ticket = streams[allocation.stream].issued->load(std::memory_order_acquire);
  event.flags |= static_cast<std::uint8_t>(static_cast<unsigned>(rung) << AllocatorEvent::kRungShift);
  allocation.event = event.number;
  if (highest) peaks.reach(allocation.event, stats.allocated_bytes.current, stats.tag_bytes);
}

std::byte* AllocatorState::address(const Allocation& allocation) const noexcept {
  return (allocation.slot ? slot_base : arena(allocation.region).base) + allocation.offset;
}

AllocatorEvent& AllocatorState::record(AllocatorEvent::Kind kind) {
  AllocatorEvent& event = log.append();
  event.kind = kind;
  event.time_ns = now();
  event.flags = inside();
  return event;
}

AllocatorEvent& AllocatorState::record(AllocatorEvent::Kind kind, const Allocation& allocation, std::int64_t now_ns) {
  AllocatorEvent& event = log.append();
  event.kind = kind;
  event.time_ns = now_ns;
  event.allocation = allocation.id;
  event.address = reinterpret_cast<std::uintptr_t>(address(allocation));
  event.bytes = allocation.bytes;
  event.requested_bytes = allocation.requested_bytes;
  event.name = allocation.name;
  event.unit = allocation.unit;
  event.stream = allocation.stream;
  event.tag = allocation.tag;
  event.region = allocation.region;
  event.flags = inside() | (allocation.slot ? AllocatorEvent::kSlot : 0);
  return event;
}

void AllocatorState::note_mapping(AllocatorEvent::Kind kind, Region region, std::byte* at, std::size_t bytes,
                                  StreamId stream) {
  Metric& of_region = stats.regions[static_cast<std::size_t>(region)].reserved_bytes;
  if (kind == AllocatorEvent::Kind::segment_map) {
    increase(stats.reserved_bytes, bytes);
    increase(of_region, bytes);
    ++stats.num_device_alloc;
    if (region == Region::transients) step_reserved = std::max(step_reserved, of_region.current);
  } else {
    decrease(stats.reserved_bytes, bytes);
    decrease(of_region, bytes);
    ++stats.num_device_free;
  }
  AllocatorEvent& event = record(kind);
  event.region = region;
  event.address = reinterpret_cast<std::uintptr_t>(at);
  event.bytes = bytes;
  event.stream = stream;
}

void AllocatorState::log_waits(std::uint8_t flags) {
  fresh_waits.clear();
  const std::uint64_t first = backend.waits().since(waits_seen, fresh_waits);
  if (first != waits_seen) record(AllocatorEvent::Kind::wait);
  for (const IssuedWait& wait : fresh_waits) {
    AllocatorEvent& event = record(AllocatorEvent::Kind::wait);
    event.stream = wait.consumer;
    event.ticket = wait.at;
    event.address = wait.producer;
    event.bytes = wait.ticket;
    event.flags |= flags;
  }
  waits_seen = first + fresh_waits.size();
}

void AllocatorState::log_uses(const Allocation& allocation, const DependencySet& uses, std::int64_t now_ns) {
  const auto log_use = [&](StreamId stream, Ticket ticket) {
    if (stream == allocation.stream || ticket == 0) return;
    AllocatorEvent& event = record(AllocatorEvent::Kind::use, allocation, now_ns);
    event.stream = stream;
    event.ticket = ticket;
  };
  for (const StreamUse& use : uses.uses()) log_use(use.stream, use.ticket);
  if (!uses.collapsed()) return;
  for (StreamId id = 0; id < streams.size(); ++id) log_use(id, streams[id].ceiling);
}

void AllocatorState::list_peak() {
  peaks.begin_list();
  for (std::uint32_t i = 0; i < allocations.size(); ++i) {
    Allocation& a = allocations[i];
    if (a.state != Allocation::State::live) continue;
    a.peak_row = peaks.add({a.name, a.unit, a.tag, false, a.bytes, a.event, std::nullopt});
  }
  for (std::uint32_t i = 0; i < views.size(); ++i) {
    View& view = views[i];
    if (view.allocation == kNoIndex) continue;
    const Allocation& a = allocations[view.allocation];
    view.peak_row = peaks.add({view.name, a.unit, a.tag, true, view.bytes, view.event, std::nullopt});
  }
}

void AllocatorState::mark_step(std::int64_t step) {
  const Lock lock(mutex);
  note_waits();
  sweep_next = pending_first;
  sweep_pending(SIZE_MAX);
  learn_step();
  AllocatorEvent& event = record(AllocatorEvent::Kind::step);
  event.allocation = static_cast<std::uint64_t>(step);
  event.name = log.intern("step");
  peaks.mark_step(step);
}

void AllocatorState::mark_unit(int unit, const char* phase, const char* operation) {
  phase = phase == nullptr ? "" : phase;
  operation = operation == nullptr ? "" : operation;
  const Lock lock(mutex);
  auto found = std::ranges::find_if(
      unit_marks, [&](const UnitMark& mark) { return mark.phase == phase && mark.operation == operation; });
  if (found == unit_marks.end()) {
    const std::uint32_t name = log.intern(std::string(phase) + ' ' + operation);
    found = unit_marks.insert(unit_marks.end(), UnitMark{phase, operation, name});
  }
  AllocatorEvent& event = record(AllocatorEvent::Kind::unit);
  event.unit = unit;
  event.name = found->name;
  peaks.mark_unit(unit, phase, operation);
}

MemoryStatistics AllocatorState::statistics() const {
  const Lock lock(mutex);
  MemoryStatistics result = stats;
  result.cached_bytes = stats.reserved_bytes.current - stats.active_bytes.current;
  for (const Arena& each : arenas) {
    result.largest_free_block = std::max(result.largest_free_block, each.pool.largest_free_bytes());
  }
  for (int r = 0; r < kRegionCount; ++r) result.releasable_bytes += seen_bytes(static_cast<Region>(r));
  return result;
}

void AllocatorState::reset_peak() {
  const Lock lock(mutex);
  for (Metric* metric :
       {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes, &stats.active, &stats.active_bytes,
        &stats.segment, &stats.reserved_bytes, &stats.inactive_split_bytes, &stats.pending_free_bytes}) {
    metric->peak = metric->current;
  }
  for (RegionStatistics& region : stats.regions) {
    region.allocated_bytes.peak = region.allocated_bytes.current;
    region.reserved_bytes.peak = region.reserved_bytes.current;
  }
  peaks.reach(record(AllocatorEvent::Kind::peak_reset).number, stats.allocated_bytes.current, stats.tag_bytes);
}

MemoryPeak AllocatorState::peak() {
  const Lock lock(mutex);
  settle_peak();
  return peaks.peak(log.names());
}

}  // namespace headroom::detail
