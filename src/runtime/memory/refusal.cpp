#include "runtime/memory/allocator_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom::detail {
namespace {

std::string size_text(std::size_t bytes) {
  if (bytes < (std::size_t{1} << 20U)) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string live_text(const TagBytes& tag_bytes) {
  std::string text;
  for (int tag = 0; tag < kTagCount; ++tag) {
    const std::size_t bytes = tag_bytes[static_cast<std::size_t>(tag)];
    if (bytes == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(static_cast<Tag>(tag)), size_text(bytes));
  }
  return text.empty() ? "nothing" : text;
}

constexpr const char* kRegionNames[] = {"residents", "communication", "transients"};

}  // namespace

void AllocatorState::refuse(const Attempt& attempt, const AllocationRequest& request, std::uint8_t flags) {
  note_refusal(attempt, request, flags);
  OutOfMemory::Details details;
  details.requested_bytes = request.bytes;
  details.allocated_bytes = stats.allocated_bytes.current;
  details.pending_bytes = stats.pending_free_bytes.current;
  details.reserved_bytes = stats.reserved_bytes.current;
  details.limit_bytes = limit_bytes;
  details.cached_bytes = stats.reserved_bytes.current - stats.active_bytes.current;
  for (const auto& [name, figure] : external) details.external_bytes += figure.bytes;
  for (const Arena& each : arenas) {
    details.largest_free_block_bytes = std::max(details.largest_free_block_bytes, each.pool.largest_free_bytes());
  }
  throw OutOfMemory(refusal, details);
}

void AllocatorState::note_refusal(const Attempt& attempt, const AllocationRequest& request, std::uint8_t flags) {
  refusal = refusal_text(attempt, request);
  ++stats.num_ooms;
  AllocatorEvent& event = record(AllocatorEvent::Kind::out_of_memory);
  event.bytes = attempt.bytes;
  event.requested_bytes = request.bytes;
  event.name = log.intern(request.name);
  event.unit = request.unit;
  event.stream = attempt.stream.id();
  event.tag = tag_of(request.category, request.state);
  event.region = attempt.region;
  event.flags |= flags;
}

std::string AllocatorState::refusal_text(const Attempt& attempt, const AllocationRequest& request) const {
  const std::size_t reserved = stats.reserved_bytes.current;
  const std::size_t cached = reserved - stats.active_bytes.current;
  const std::size_t pending = stats.pending_free_bytes.current;
  std::size_t largest = 0, usable = headroom_bytes(attempt);  // bytes that would do, were they in one piece
  for (const Arena& each : arenas) {
    largest = std::max(largest, each.pool.largest_free_bytes());
    for (BlockPool::Index i = each.pool.first(); i != BlockPool::kNone; i = each.pool[i].after) {
      if (each.pool[i].state != BlockPool::State::used) usable += each.pool[i].bytes;
    }
  }
  std::string bound;
  if (request.bytes > limit_bytes) {
    bound = "the request alone exceeds the limit";
  } else if (request.bytes > capacity_bytes) {
    bound = fmt::format("the request alone exceeds the {} that can be mapped", size_text(capacity_bytes));
  } else if (attempt.device_full) {
    bound = "the device has no more memory, although the limit is not reached";
  } else if (attempt.bytes <= usable) {
    bound = attempt.bytes <= largest ? "free bytes would suffice, but other regions use parts of their pages"
                                     : "fragmented, not full: free bytes would suffice, but not in one piece";
  } else if (request.bytes <= limit_bytes - std::min(reserved, limit_bytes)) {
    bound = fmt::format("memory is taken in whole pages of {} bytes, of which the limit leaves room for {}", page_bytes,
                        headroom_bytes(attempt) / page_bytes);
  } else {
    bound = slot_committed_bytes > 0 ? "live bytes, the pages of slots and the request exceed the limit"
                                     : "live bytes and the request exceed the limit";
  }
  std::string text = fmt::format(
      "out of memory: '{}' ({}{}) asked for {} ({} bytes) in region {}: {}. Limit {}, reserved {}, allocated {}, "
      "pending {}, cached {}, largest free block {}. Live: {}.",
      request.name, name_of(tag_of(request.category, request.state)),
      request.unit >= 0 ? fmt::format(", unit {}", request.unit) : "", size_text(request.bytes), request.bytes,
      kRegionNames[static_cast<std::size_t>(attempt.region)], bound, size_text(limit_bytes), size_text(reserved),
      size_text(stats.allocated_bytes.current), size_text(pending), size_text(cached), size_text(largest),
      live_text(stats.tag_bytes));
  for (const auto& [name, figure] : external) text += fmt::format(" External: {} {}.", name, size_text(figure.bytes));
  return text;
}

}  // namespace headroom::detail
