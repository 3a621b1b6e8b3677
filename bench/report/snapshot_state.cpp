#include "report/snapshot_state.hpp"

#include <algorithm>
#include <iterator>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;
using Action = SnapshotEntry::Action;

}  // namespace

void SnapshotState::add(Action action, const SnapshotBlock& block, std::uint64_t bytes) {
  if (entries_.size() == max_entries_) {
    entries_.pop_front();
    overflowed_ = true;
  }
  entries_.push_back({action, block.tag, block.stream, block.address, bytes, time_us_, block.site});
}

void SnapshotState::apply(std::size_t index) {
  const AllocatorEvent& event = reader_.events()[index];
  time_us_ = std::max(time_us_, (reader_.info().epoch_ns + event.time_ns) / 1000);
  switch (event.kind) {
    case Kind::segment_map: return map(event, index);
    case Kind::segment_unmap: return unmap(event, index);
    case Kind::alloc: return begin(event, index);
    case Kind::free_requested:
      if (SnapshotBlock* block = find(event)) {
        block->pending = true;
        add(Action::free_requested, *block, block->requested_bytes);
      }
      return;
    case Kind::free_completed: return end(event);
    case Kind::retag:
      if (SnapshotBlock* block = find(event)) block->tag = event.tag;
      return;
    case Kind::out_of_memory: {
      const std::uint64_t limit = reader_.info().layout.limit_bytes;
      SnapshotBlock refused;
      refused.address = limit - std::min(limit, reserved_bytes_);
      refused.stream = event.stream;
      refused.tag = event.tag;
      refused.site = {event.name, site_.mark, event.unit, site_.step};
      return add(Action::oom, refused, event.requested_bytes);
    }
    case Kind::step: site_.step = static_cast<std::int64_t>(event.allocation); return;
    case Kind::unit: site_.mark = event.name; return;
    default: return;  // nothing of a block changes
  }
}

SnapshotBlock* SnapshotState::find(const AllocatorEvent& event) {
  const auto found = addresses_.find(event.allocation);
  return found == addresses_.end() ? nullptr : &blocks_.at(found->second);
}

bool SnapshotState::is_free(std::uint64_t address, std::uint64_t bytes) const {
  const auto range = mapped_.upper_bound(address);
  if (range == mapped_.begin() || std::prev(range)->second < address + bytes || address + bytes < address) return false;
  const auto next = blocks_.lower_bound(address);
  if (next != blocks_.end() && next->first < address + bytes) return false;
  return next == blocks_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= address;
}

void SnapshotState::begin(const AllocatorEvent& event, std::size_t index) {
  if (event.bytes == 0) return;
  if (!is_free(event.address, event.bytes))
    reader_.refuse(index, "a block in memory that is mapped and free",
                   std::to_string(event.bytes) + " bytes at address " + std::to_string(event.address));
  SnapshotBlock block{event.address, event.bytes, event.requested_bytes, event.stream, event.tag, false, {}};
  block.site = {event.name, site_.mark, event.unit, site_.step};
  blocks_.emplace(event.address, block);
  addresses_.emplace(event.allocation, event.address);
  add(Action::alloc, block, block.requested_bytes);
}

void SnapshotState::end(const AllocatorEvent& event) {
  const SnapshotBlock* block = find(event);
  if (block == nullptr) return;
  add(Action::free_completed, *block, block->requested_bytes);
  blocks_.erase(block->address);
  addresses_.erase(event.allocation);
}

void SnapshotState::map(const AllocatorEvent& event, std::size_t index) {
  std::uint64_t from = event.address, to = event.address + event.bytes;
  auto after = mapped_.lower_bound(from);
  const bool touches_before = after != mapped_.begin() && std::prev(after)->second >= from;
  if (to < from || (after != mapped_.end() && after->first < to) || (touches_before && std::prev(after)->second > from))
    reader_.refuse(index, "pages that are not mapped", "some that are");
  SnapshotBlock pages;
  pages.address = from;
  add(Action::segment_map, pages, event.bytes);
  reserved_bytes_ += event.bytes;
  if (touches_before) {
    from = std::prev(after)->first;
    mapped_.erase(std::prev(after));
  }
  if (after != mapped_.end() && after->first == to) {
    to = after->second;
    mapped_.erase(after);
  }
  if (from < to) mapped_.emplace(from, to);
}

void SnapshotState::unmap(const AllocatorEvent& event, std::size_t index) {
  const std::uint64_t from = event.address, to = event.address + event.bytes;
  if (event.bytes == 0) return;
  if (!is_free(from, event.bytes)) reader_.refuse(index, "pages that are mapped and free", "others");
  const auto range = std::prev(mapped_.upper_bound(from));
  const std::uint64_t range_from = range->first, range_to = range->second;
  mapped_.erase(range);
  if (range_from < from) mapped_.emplace(range_from, from);
  if (to < range_to) mapped_.emplace(to, range_to);
  SnapshotBlock pages;
  pages.address = from;
  add(Action::segment_unmap, pages, event.bytes);
  reserved_bytes_ -= event.bytes;
}

void SnapshotState::begin_window() {
  entries_.clear();
  overflowed_ = false;
  for (const auto& [from, to] : mapped_) {
    SnapshotBlock pages;
    pages.address = from;
    add(Action::segment_map, pages, to - from);
  }
  for (const auto& [address, block] : blocks_) add(Action::alloc, block, block.requested_bytes);
  for (const auto& [address, block] : blocks_) {
    if (block.pending) add(Action::free_requested, block, block.requested_bytes);
  }
}

}  // namespace headroom::bench
