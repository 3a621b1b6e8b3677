#include "runtime/memory/buffer_life.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <unordered_map>

namespace headroom::detail {
namespace {

using Kind = AllocatorEvent::Kind;

BufferLife life_of(const AllocatorEvent& event) {
  BufferLife life;
  life.time_ns = event.time_ns;
  life.buffer.allocation = event.allocation;
  life.buffer.event = event.number;
  life.buffer.bytes = event.bytes;
  life.buffer.requested_bytes = event.requested_bytes;
  life.buffer.ticket = event.ticket;
  life.buffer.name = event.name;
  life.buffer.unit = event.unit;
  life.buffer.stream = event.stream;
  life.buffer.tag = event.tag;
  life.buffer.region = event.region;
  return life;
}

BufferLife life_of(const LiveBuffer& buffer) {
  BufferLife life;
  life.buffer = buffer;
  life.before = true;
  life.shared =
      std::ranges::any_of(buffer.views, [&](const LiveView& view) { return view.bytes == buffer.requested_bytes; });
  if (buffer.pending) life.freed = INT64_MIN;
  return life;
}

bool concerns_a_storage(Kind kind) {
  return kind == Kind::retag || kind == Kind::view || kind == Kind::use || kind == Kind::free_requested;
}

void change(BufferLife& life, const AllocatorEvent& event) {
  switch (event.kind) {
    case Kind::retag: life.changes.push_back({event.tag, event.stream, event.ticket, event.time_ns}); return;
    case Kind::view: life.shared = life.shared || event.bytes == life.buffer.requested_bytes; return;
    case Kind::use: life.buffer.last_uses.push_back({event.stream, event.ticket}); return;
    default: life.freed = event.time_ns; break;
  }
  if (event.ticket > 0) life.buffer.last_uses.push_back({event.stream, event.ticket});
}

}  // namespace

std::vector<BufferLife> buffer_lives(std::span<const LiveBuffer> live, std::span<const AllocatorEvent> events) {
  std::vector<BufferLife> lives;
  std::unordered_map<std::uint64_t, std::size_t> places;
  for (const LiveBuffer& buffer : live) {
    places.emplace(buffer.allocation, lives.size());
    lives.push_back(life_of(buffer));
  }
  for (const AllocatorEvent& event : events) {
    if (event.kind == Kind::alloc) {
      places.emplace(event.allocation, lives.size());
      lives.push_back(life_of(event));
    }
    if (!concerns_a_storage(event.kind)) continue;
    const auto found = places.find(event.allocation);
    if (found == places.end()) {
      throw InvalidInput(fmt::format("allocator log: event {} names an allocation that is not live (allocation {})",
                                     event.number, event.allocation));
    }
    change(lives[found->second], event);
    if (event.kind == Kind::free_requested) places.erase(found);
  }
  return lives;
}

}  // namespace headroom::detail
