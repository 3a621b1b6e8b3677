#pragma once

#include <headroom/communicator.hpp>
#include <headroom/process_memory.hpp>

#include <functional>
#include <string>
#include <vector>

namespace headroom::bench {

/// What the system said of this process, all its ranks together, when a run had come so far; and the rank's allocator.
struct MemoryMoment {
  std::string name;  ///< "init", "first_step" or "steady"; "step_N" where options ask for it.
  MemoryUse use;
  MemoryStatistics statistics;
};

/// Read while every rank waits here, so that no rank's memory comes or goes meanwhile. Ranks that share the process get
/// one reading, made by rank 0 with the ranges that its `known` finds then; else each reads its own. Collective.
[[nodiscard]] MemoryUse memory_of_process(Communicator& control, bool shares_process, const CachingAllocator& memory,
                                          const std::function<std::vector<KnownRange>()>& known);

}  // namespace headroom::bench
