#pragma once

#include <headroom/memory_statistics.hpp>
#include <headroom/trace.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom {

/// A share of a storage other than its first: the range [address, +bytes).
struct LiveView {
  std::uint64_t event = 0, address = 0, bytes = 0;
  std::uint32_t name = 0;
};

/// The work that a buffer is last used by.
struct LastUse {
  StreamId stream = 0;
  Ticket ticket = 0;
};

/// A storage from its alloc event to its free_completed. `pending`: its free is requested, so that it counts in active
/// bytes only; `last_uses` say what it waits for.
struct LiveBuffer {
  std::uint64_t allocation = 0, event = 0, address = 0;  ///< `event`: the number of its alloc event.
  std::size_t bytes = 0, requested_bytes = 0;
  Ticket ticket = 0;  ///< Used by work of `stream` after this ticket.
  std::uint32_t name = 0;
  int unit = -1;
  StreamId stream = 0;
  Tag tag = Tag::other;
  Region region = Region::transients;
  bool slot = false, pending = false;
  bool held = true;     ///< By its first share.
  bool viewed = false;  ///< It has, or had, views.
  std::vector<LiveView> views;
  std::vector<LastUse> last_uses;
};

/// Memory right after one event. Of `statistics` all metrics, regions, tags (they sum to allocated), rungs,
/// `waited`, host_waits, num_ooms, num_device_* and cached bytes are the allocator's own.
struct MemoryInstant {
  std::uint64_t event = 0;
  std::int64_t time_ns = 0;           ///< When the host asked for it.
  std::int64_t step = -1;             ///< Of the last step mark.
  int unit = -1;                      ///< Of the last unit mark.
  std::optional<std::uint32_t> mark;  ///< That mark's name: "PHASE OPERATION".
  MemoryStatistics statistics;
  /// Union of live view ranges: of a storage without a view all requested bytes, from its first view on those of views.
  std::size_t union_bytes = 0;
  std::size_t share_bytes = 0;      ///< Each share by itself, the first included: counts views twice.
  std::size_t releasing_bytes = 0;  ///< The pending bytes of full parameters: in nothing that sums to allocated.

  [[nodiscard]] std::size_t allocated_bytes() const noexcept { return statistics.allocated_bytes.current; }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return statistics.reserved_bytes.current; }
  [[nodiscard]] std::size_t pending_bytes() const noexcept { return statistics.pending_free_bytes.current; }
  [[nodiscard]] std::size_t bytes(Tag tag) const noexcept {
    return statistics.tag_bytes[static_cast<std::size_t>(tag)];
  }
};

/// Folds an allocator's log, from its first event on, in issue order. Holds what is live and the list of the peak's
/// blocks, however long the log is. Not thread-safe.
class Timeline {
 public:
  Timeline();
  ~Timeline();
  Timeline(Timeline&& other) noexcept;
  Timeline& operator=(Timeline&& other) noexcept;

  /// Memory after `event`; valid until the next call. Throws: InvalidInput, naming the events that are missing before
  /// it, or why it cannot follow those before it; then the timeline is as it was.
  const MemoryInstant& apply(const AllocatorEvent& event);
  [[nodiscard]] const MemoryInstant& now() const noexcept;
  /// What is live now, and what is pending, in the order of their allocation.
  [[nodiscard]] std::vector<LiveBuffer> live() const;
  /// The highest instant since the log began, or peaks were reset: CachingAllocator::peak(), of the log's names. Blocks
  /// in order of their allocation.
  [[nodiscard]] MemoryPeak peak(std::span<const std::string> names) const;
  [[nodiscard]] std::size_t entries() const noexcept;  ///< Storages, views and blocks held: what memory goes with.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Splits a unit mark's name into phase and operation.
[[nodiscard]] std::pair<std::string, std::string> split_mark(const std::string& name);

}  // namespace headroom
