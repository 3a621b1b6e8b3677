#pragma once

#include <headroom/buffer.hpp>
#include <headroom/error.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

/// PyTorch's metrics with PyTorch's meanings: allocated falls when a free is requested, active when it is completed.
struct Metric {
  std::size_t current = 0, peak = 0, allocated = 0, freed = 0;
};

struct RegionStatistics {
  Metric allocated_bytes, reserved_bytes;
};

/// `segment` and `inactive_split_bytes` are always 0, as PyTorch's are for expandable segments, which all regions are:
/// it counts a segment where it is allocated whole, not page by page, and free pages of a growing one as no split
/// block. `reserved_bytes`, num_device_alloc and num_device_free count what is mapped.
struct MemoryStatistics {
  Metric allocation, allocated_bytes, requested_bytes, active, active_bytes, segment, reserved_bytes;
  Metric inactive_split_bytes, pending_free_bytes;
  std::size_t cached_bytes = 0, largest_free_block = 0;
  std::uint64_t num_alloc_retries = 0, num_ooms = 0, num_device_alloc = 0, num_device_free = 0;
  std::uint64_t waited_reuse = 0, host_waits = 0;  ///< Blocks reused after a stream wait; waits of the calling thread.
  std::array<RegionStatistics, kRegionCount> regions{};
  TagBytes tag_bytes{};  ///< Sums to allocated_bytes.current.
};

/// A block that was live at the peak. Shares of one storage: the block is `own`, each view of it `shared`.
struct LiveBlock {
  std::string name;
  int unit = -1;
  Tag tag = Tag::other;
  std::size_t bytes = 0;
  std::uint64_t allocated_event = 0;
  std::optional<std::uint64_t> freed_event;
  bool shared = false;
};

struct MemoryPeak {
  std::uint64_t event = 0;
  std::int64_t step = -1;
  std::size_t allocated_bytes = 0;
  TagBytes tag_bytes{};
  int unit = -1;                 ///< The last unit mark before the peak.
  std::string phase, operation;  ///< As given to mark_unit.
  std::vector<LiveBlock> blocks;
};

struct AllocatorOptions {
  std::size_t limit_bytes = 0;            ///< Of reserved bytes, all regions; 0: what the device has.
  std::size_t event_capacity = 1U << 18;  ///< Events kept; older ones are dropped, and counted. 0: no log.
};

/// Stream-ordered caching allocator of one device (one rank). Every byte of every tensor comes from it.
/// Thread-safety: all members. Addresses depend only on the order of calls, never on timing.
class CachingAllocator {
 public:
  explicit CachingAllocator(const Device& device, const AllocatorOptions& options = {});
  ~CachingAllocator();  ///< Live buffers keep the storage, but must be gone before the device is.
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws: OutOfMemory, with nothing changed but counters.
  [[nodiscard]] Buffer allocate(const AllocationRequest& request, StreamRef stream);
  [[nodiscard]] std::optional<Buffer> try_allocate(const AllocationRequest& request, StreamRef stream);

  /// Backs [0, bytes) of the communication region for slots, at once. Throws: OutOfMemory; std::logic_error with live
  /// slots.
  void commit_slots(std::size_t bytes);
  /// The buffer at a planned offset. Throws: std::logic_error where it overlaps a live slot, or one whose uses `stream`
  /// is not ordered after: a schedule that breaks its own plan is an error here, never a race.
  [[nodiscard]] Buffer allocate_slot(std::size_t offset_bytes, const AllocationRequest& request, StreamRef stream);

  [[nodiscard]] MemoryStatistics statistics() const;
  void reset_peak();  ///< peak <- current.
  [[nodiscard]] MemoryPeak peak() const;
  /// The text of the last refusal, empty if there was none.
  [[nodiscard]] std::string last_refusal() const;

  void mark_step(std::int64_t step);
  /// `phase` and `operation` have static lifetime.
  void mark_unit(int unit, const char* phase, const char* operation);
  /// Events still in the log, oldest first; the first number is 0 unless some were dropped.
  [[nodiscard]] std::vector<AllocatorEvent> events() const;
  [[nodiscard]] std::uint64_t dropped_events() const;
  [[nodiscard]] std::vector<std::string> names() const;

  /// Bytes that Headroom does not own (library workspaces); replaces an earlier figure of that name.
  void register_external(const std::string& name, std::size_t bytes);
  [[nodiscard]] std::map<std::string, std::size_t> external() const;

  [[nodiscard]] Device device() const;
  /// Verifies every invariant from scratch, O(blocks). Throws: std::logic_error naming the first one broken.
  void check() const;

 private:
  friend struct detail::AllocatorState;
  std::shared_ptr<detail::AllocatorState> state_;
};

}  // namespace headroom
