#pragma once

#include <headroom/events.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

/// PyTorch's metrics with PyTorch's meanings: allocated falls when a free is requested, active when it is completed.
struct Metric {
  std::size_t current = 0, peak = 0, allocated = 0, freed = 0;
};

/// Device waits made for reuse: `consumer` was ordered after `producer`.
struct WaitedReuse {
  StreamId consumer = 0, producer = 0;
  std::uint64_t count = 0;
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
  std::array<std::uint64_t, kRungCount> rungs{};   ///< Allocations served, by Rung.
  std::vector<WaitedReuse> waited;                 ///< Sums to at least waited_reuse: a block may need several waits.
  std::size_t soft_limit_bytes = 0;                ///< Of the transients' reserved bytes, learned; 0: not yet.
  std::size_t releasable_bytes = 0;                ///< Whole free pages that trim() would give back.
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

}  // namespace headroom
