#include <headroom/error.hpp>

#include "runtime/core/stream_order.hpp"
#include "runtime/memory/timeline_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom {
namespace detail {
namespace {

using Kind = AllocatorEvent::Kind;

[[noreturn]] void refuse(const AllocatorEvent& event, const char* what) {
  throw InvalidInput(fmt::format("allocator log: event {} {} (allocation {})", event.number, what, event.allocation));
}

void expect_number(std::uint64_t found, std::uint64_t expected) {
  if (found == expected) return;
  if (found < expected) {
    throw InvalidInput(fmt::format("allocator log: event {} comes again, or late: expected event {}", found, expected));
  }
  if (found == expected + 1) throw InvalidInput(fmt::format("allocator log: a hole: event {} is missing", expected));
  throw InvalidInput(fmt::format("allocator log: a hole: events {} to {} are missing", expected, found - 1));
}

bool is_full_parameter(Tag tag) noexcept {
  return tag >= Tag::parameter_full_gathering && tag <= Tag::parameter_full_releasing;
}

bool ends_a_list(Kind kind) noexcept {
  return kind == Kind::free_requested || kind == Kind::retag || kind == Kind::view || kind == Kind::view_drop;
}

}  // namespace

void TimelineState::apply(const AllocatorEvent& event) {
  expect_number(event.number, next);
  if (event.tag > Tag::other || static_cast<std::size_t>(event.region) >= kRegionCount) {
    refuse(event, "has no known tag");
  }
  if (peaks.wants_list() && ends_a_list(event.kind)) list_peak();
  dispatch(event);
  now.event = event.number;
  now.time_ns = event.time_ns;
  now.statistics.cached_bytes = now.statistics.reserved_bytes.current - now.statistics.active_bytes.current;
  ++next;
}

void TimelineState::dispatch(const AllocatorEvent& event) {
  switch (event.kind) {
    case Kind::segment_map:
    case Kind::segment_unmap: map(event); return;
    case Kind::alloc: begin(event); return;
    case Kind::free_requested: request_free(event); return;
    case Kind::free_completed: complete_free(event); return;
    case Kind::view: add_view(event); return;
    case Kind::view_drop: drop_view(event); return;
    case Kind::retag: {
      Storage& storage = live(event);
      TagBytes& tags = now.statistics.tag_bytes;
      tags[static_cast<std::size_t>(storage.buffer.tag)] -= storage.buffer.bytes;
      tags[static_cast<std::size_t>(event.tag)] += storage.buffer.bytes;
      storage.buffer.tag = event.tag;
      return;
    }
    case Kind::out_of_memory: ++now.statistics.num_ooms; return;
    case Kind::use: live(event).buffer.last_uses.push_back({event.stream, event.ticket}); return;
    case Kind::step:
      now.step = static_cast<std::int64_t>(event.allocation);
      peaks.mark_step(now.step);
      return;
    case Kind::unit:
      now.unit = event.unit;
      now.mark = event.name;
      peaks.mark_unit(event.unit, "", "");
      return;
    case Kind::peak_reset: reset_peaks(event); return;
    case Kind::host_wait: ++now.statistics.host_waits; return;
    case Kind::wait: count_wait(event); return;
    case Kind::trim:
    case Kind::slots:
    case Kind::callback: return;
  }
  refuse(event, "is of no known kind");
}

void TimelineState::map(const AllocatorEvent& event) {
  MemoryStatistics& sums = now.statistics;
  Metric& region = sums.regions[static_cast<std::size_t>(event.region)].reserved_bytes;
  if (event.kind == Kind::segment_map) {
    increase(sums.reserved_bytes, event.bytes);
    increase(region, event.bytes);
    ++sums.num_device_alloc;
    return;
  }
  if (event.bytes > region.current) refuse(event, "unmaps more than is mapped");
  decrease(sums.reserved_bytes, event.bytes);
  decrease(region, event.bytes);
  ++sums.num_device_free;
}

TimelineState::Storage& TimelineState::live(const AllocatorEvent& event) {
  const auto found = storages.find(event.allocation);
  if (found == storages.end() || found->second.buffer.pending) refuse(event, "names an allocation that is not live");
  return found->second;
}

void TimelineState::begin(const AllocatorEvent& event) {
  if (static_cast<int>(event.rung()) >= kRungCount) refuse(event, "was served in no known way");
  const auto [place, is_new] = storages.try_emplace(event.allocation);
  if (!is_new) refuse(event, "allocates what is allocated");
  LiveBuffer& buffer = place->second.buffer;
  buffer.allocation = event.allocation;
  buffer.event = event.number;
  buffer.address = event.address;
  buffer.bytes = event.bytes;
  buffer.requested_bytes = event.requested_bytes;
  buffer.ticket = event.ticket;
  buffer.name = event.name;
  buffer.unit = event.unit;
  buffer.stream = event.stream;
  buffer.tag = event.tag;
  buffer.region = event.region;
  buffer.slot = event.is_slot();
  MemoryStatistics& sums = now.statistics;
  const bool highest = sums.allocated_bytes.current + buffer.bytes > sums.allocated_bytes.peak;
  increase(sums.allocation, 1);
  increase(sums.active, 1);
  increase(sums.allocated_bytes, buffer.bytes);
  increase(sums.active_bytes, buffer.bytes);
  increase(sums.requested_bytes, buffer.requested_bytes);
  increase(sums.regions[static_cast<std::size_t>(buffer.region)].allocated_bytes, buffer.bytes);
  sums.tag_bytes[static_cast<std::size_t>(buffer.tag)] += buffer.bytes;
  ++sums.rungs[static_cast<std::size_t>(event.rung())];
  measure(place->second);
  if (!highest) return;
  peaks.reach(event.number, sums.allocated_bytes.current, sums.tag_bytes);
  peak_mark = now.mark;
}

void TimelineState::request_free(const AllocatorEvent& event) {
  Storage& storage = live(event);
  LiveBuffer& buffer = storage.buffer;
  if (buffer.views.size() + (buffer.held ? 1 : 0) > 1) refuse(event, "frees a storage that has views");
  buffer.pending = true;
  if (event.ticket > 0) buffer.last_uses.push_back({event.stream, event.ticket});
  shares -= buffer.views.size();
  buffer.views.clear();
  storage.view_rows.clear();
  now.union_bytes -= storage.union_bytes;
  now.share_bytes -= storage.share_bytes;
  MemoryStatistics& sums = now.statistics;
  decrease(sums.allocation, 1);
  decrease(sums.allocated_bytes, buffer.bytes);
  decrease(sums.regions[static_cast<std::size_t>(buffer.region)].allocated_bytes, buffer.bytes);
  sums.tag_bytes[static_cast<std::size_t>(buffer.tag)] -= buffer.bytes;
  storage.waits = (event.flags & AllocatorEvent::kPending) != 0;
  if (storage.waits) increase(sums.pending_free_bytes, buffer.bytes);
  if (storage.waits && is_full_parameter(buffer.tag)) now.releasing_bytes += buffer.bytes;
  peaks.freed(storage.row, event.number);
}

void TimelineState::complete_free(const AllocatorEvent& event) {
  const auto found = storages.find(event.allocation);
  if (found == storages.end() || !found->second.buffer.pending) {
    refuse(event, "completes a free that nobody requested");
  }
  const LiveBuffer& buffer = found->second.buffer;
  MemoryStatistics& sums = now.statistics;
  decrease(sums.active, 1);
  decrease(sums.active_bytes, buffer.bytes);
  decrease(sums.requested_bytes, buffer.requested_bytes);
  if (found->second.waits && is_full_parameter(buffer.tag)) now.releasing_bytes -= buffer.bytes;
  if (found->second.waits) decrease(sums.pending_free_bytes, buffer.bytes);
  storages.erase(found);
}

void TimelineState::count_wait(const AllocatorEvent& event) {
  if ((event.flags & AllocatorEvent::kOwnWait) == 0 || event.stream == StreamOrder::kHost) return;
  std::vector<WaitedReuse>& waited = now.statistics.waited;
  const auto producer = static_cast<StreamId>(event.address);
  const auto pair = std::ranges::find_if(
      waited, [&](const WaitedReuse& each) { return each.consumer == event.stream && each.producer == producer; });
  if (pair == waited.end()) {
    waited.push_back({event.stream, producer, 1});
  } else {
    ++pair->count;
  }
}

void TimelineState::reset_peaks(const AllocatorEvent& event) {
  MemoryStatistics& sums = now.statistics;
  for (Metric* metric : {&sums.allocation, &sums.allocated_bytes, &sums.requested_bytes, &sums.active,
                         &sums.active_bytes, &sums.reserved_bytes, &sums.pending_free_bytes}) {
    metric->peak = metric->current;
  }
  for (RegionStatistics& region : sums.regions) {
    region.allocated_bytes.peak = region.allocated_bytes.current;
    region.reserved_bytes.peak = region.reserved_bytes.current;
  }
  peaks.reach(event.number, sums.allocated_bytes.current, sums.tag_bytes);
  peak_mark = now.mark;
}

void TimelineState::list_peak() {
  std::vector<Storage*> ordered;
  ordered.reserve(storages.size());
  for (auto& entry : storages) {
    if (!entry.second.buffer.pending) ordered.push_back(&entry.second);
  }
  std::ranges::sort(ordered, {}, [](const Storage* storage) { return storage->buffer.event; });
  peaks.begin_list();
  rows = 0;
  for (Storage* storage : ordered) {
    const LiveBuffer& buffer = storage->buffer;
    storage->row = peaks.add({buffer.name, buffer.unit, buffer.tag, false, buffer.bytes, buffer.event, std::nullopt});
    for (std::size_t i = 0; i < buffer.views.size(); ++i) {
      const LiveView& view = buffer.views[i];
      storage->view_rows[i] =
          peaks.add({view.name, buffer.unit, buffer.tag, true, view.bytes, view.event, std::nullopt});
    }
    rows += 1 + buffer.views.size();
  }
}

}  // namespace detail

Timeline::Timeline() : state_(std::make_unique<State>()) {}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&& other) noexcept = default;
Timeline& Timeline::operator=(Timeline&& other) noexcept = default;

const MemoryInstant& Timeline::apply(const AllocatorEvent& event) {
  state_->apply(event);
  return state_->now;
}

const MemoryInstant& Timeline::now() const noexcept { return state_->now; }

std::vector<LiveBuffer> Timeline::live() const {
  std::vector<LiveBuffer> buffers;
  buffers.reserve(state_->storages.size());
  for (const auto& entry : state_->storages) buffers.push_back(entry.second.buffer);
  std::ranges::sort(buffers, {}, &LiveBuffer::event);
  return buffers;
}

MemoryPeak Timeline::peak(std::span<const std::string> names) const {
  if (state_->peaks.wants_list()) state_->list_peak();
  MemoryPeak peak = state_->peaks.peak(names);
  if (state_->peak_mark) std::tie(peak.phase, peak.operation) = split_mark(names[*state_->peak_mark]);
  return peak;
}

std::size_t Timeline::entries() const noexcept { return state_->storages.size() + state_->shares + state_->rows; }

std::pair<std::string, std::string> split_mark(const std::string& name) {
  const std::size_t space = std::min(name.find(' '), name.size());
  return {name.substr(0, space), name.substr(std::min(space + 1, name.size()))};
}

}  // namespace headroom
