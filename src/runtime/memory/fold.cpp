#include "runtime/memory/fold.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

namespace headroom::detail {
namespace {

[[noreturn]] void refuse(const AllocatorEvent& event, const char* what) {
  throw InvalidInput(fmt::format("allocator log: event {} {} (allocation {})", event.number, what, event.allocation));
}

bool is_full_parameter(Tag tag) noexcept {
  return tag >= Tag::parameter_full_gathering && tag <= Tag::parameter_full_releasing;
}

std::size_t index_of(Tag tag) noexcept { return static_cast<std::size_t>(tag); }
std::size_t index_of(Region region) noexcept { return static_cast<std::size_t>(region); }

}  // namespace

void EventFold::apply(const AllocatorEvent& event) {
  using Kind = AllocatorEvent::Kind;
  if (event.number != next_) {
    throw InvalidInput(fmt::format("allocator log: a hole: event {} where event {} should be", event.number, next_));
  }
  ++next_;
  if (index_of(event.tag) >= kTagCount || index_of(event.region) >= kRegionCount) refuse(event, "has no known tag");
  std::size_t& reserved = memory_.region_reserved_bytes[index_of(event.region)];
  switch (event.kind) {
    case Kind::segment_map: reserved += event.bytes; return;
    case Kind::segment_unmap:
      if (event.bytes > reserved) refuse(event, "unmaps more than is mapped");
      reserved -= event.bytes;
      return;
    case Kind::alloc: begin(event); return;
    case Kind::free_requested: request_free(event); return;
    case Kind::free_completed: complete_free(event); return;
    case Kind::view: ++live(event).shares; return;
    case Kind::view_drop: drop_view(event); return;
    case Kind::retag: {
      Block& block = live(event);
      memory_.tag_bytes[index_of(block.tag)] -= block.bytes;
      block.tag = event.tag;
      memory_.tag_bytes[index_of(block.tag)] += block.bytes;
      return;
    }
    case Kind::out_of_memory: ++memory_.out_of_memory; return;
    case Kind::use: static_cast<void>(live(event)); return;
    case Kind::step:
    case Kind::unit:
    case Kind::wait:
    case Kind::trim:
    case Kind::slots:
    case Kind::peak_reset:
    case Kind::host_wait:
    case Kind::callback: return;
  }
  refuse(event, "is of no known kind");
}

EventFold::Block& EventFold::live(const AllocatorEvent& event) {
  const auto found = blocks_.find(event.allocation);
  if (found == blocks_.end() || found->second.pending) refuse(event, "names an allocation that is not live");
  return found->second;
}

void EventFold::begin(const AllocatorEvent& event) {
  Block block;
  block.bytes = event.bytes;
  block.requested_bytes = event.requested_bytes;
  block.tag = event.tag;
  block.region = event.region;
  if (!blocks_.emplace(event.allocation, block).second) refuse(event, "allocates what is allocated");
  ++memory_.allocations;
  ++memory_.active;
  memory_.allocated_bytes += block.bytes;
  memory_.active_bytes += block.bytes;
  memory_.requested_bytes += block.requested_bytes;
  memory_.tag_bytes[index_of(block.tag)] += block.bytes;
  memory_.region_allocated_bytes[index_of(block.region)] += block.bytes;
}

void EventFold::request_free(const AllocatorEvent& event) {
  Block& block = live(event);
  if (block.shares > 1) refuse(event, "frees a storage that has views");
  block.pending = true;
  --memory_.allocations;
  memory_.allocated_bytes -= block.bytes;
  memory_.tag_bytes[index_of(block.tag)] -= block.bytes;
  memory_.region_allocated_bytes[index_of(block.region)] -= block.bytes;
  if (is_full_parameter(block.tag)) memory_.releasing_bytes += block.bytes;
}

void EventFold::complete_free(const AllocatorEvent& event) {
  const auto found = blocks_.find(event.allocation);
  if (found == blocks_.end() || !found->second.pending) refuse(event, "completes a free that nobody requested");
  const Block& block = found->second;
  --memory_.active;
  memory_.active_bytes -= block.bytes;
  memory_.requested_bytes -= block.requested_bytes;
  if (is_full_parameter(block.tag)) memory_.releasing_bytes -= block.bytes;
  blocks_.erase(found);
}

void EventFold::drop_view(const AllocatorEvent& event) {
  Block& block = live(event);
  if (block.shares == 0) refuse(event, "drops a view that is not there");
  --block.shares;
}

void fold(std::span<const AllocatorEvent> events, std::uint64_t dropped,
          const std::function<void(const AllocatorEvent&, const FoldedMemory&)>& visit) {
  if (dropped > 0) throw InvalidInput(fmt::format("allocator log: a hole: its first {} events were dropped", dropped));
  EventFold folding;
  for (const AllocatorEvent& event : events) {
    folding.apply(event);
    visit(event, folding.memory());
  }
}

}  // namespace headroom::detail
