#pragma once

#include <headroom/events.hpp>

#include <functional>
#include <span>
#include <unordered_map>

namespace headroom::detail {

/// Memory at one event. `releasing_bytes`: the pending ones of full parameters; in nothing that sums to allocated.
struct FoldedMemory {
  TagBytes tag_bytes{};
  std::size_t allocations = 0, active = 0;
  std::size_t allocated_bytes = 0, active_bytes = 0, requested_bytes = 0, releasing_bytes = 0;
  std::array<std::size_t, kRegionCount> region_allocated_bytes{}, region_reserved_bytes{};
  std::uint64_t out_of_memory = 0;

  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    std::size_t sum = 0;
    for (const std::size_t bytes : region_reserved_bytes) sum += bytes;
    return sum;
  }
  [[nodiscard]] std::size_t pending_bytes() const noexcept { return active_bytes - allocated_bytes; }
};

/// Replays allocator events into memory at each of them; no device, no clock. The log must be whole: throws
/// InvalidInput naming the hole, or the event that cannot follow those before it.
///
/// `view` adds, and `view_drop` removes, a range; the drop of a storage's first share while others remain is a
/// `view_drop` of the whole requested range, which no `view` announced.
class EventFold {
 public:
  void apply(const AllocatorEvent& event);
  [[nodiscard]] const FoldedMemory& memory() const noexcept { return memory_; }

 private:
  struct Block {
    std::size_t bytes = 0, requested_bytes = 0;
    Tag tag = Tag::other;
    Region region = Region::transients;
    std::uint64_t shares = 1;
    bool pending = false;
  };
  Block& live(const AllocatorEvent& event);
  void begin(const AllocatorEvent& event);
  void request_free(const AllocatorEvent& event);
  void complete_free(const AllocatorEvent& event);
  void drop_view(const AllocatorEvent& event);

  FoldedMemory memory_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::uint64_t next_ = 0;
};

/// Folds a whole log, oldest first, showing each event with the memory after it.
void fold(std::span<const AllocatorEvent> events, std::uint64_t dropped,
          const std::function<void(const AllocatorEvent&, const FoldedMemory&)>& visit);

}  // namespace headroom::detail
