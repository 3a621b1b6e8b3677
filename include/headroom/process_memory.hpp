#pragma once

#include <headroom/allocator.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace headroom {

/// Addresses whose owner the caller knows, such as a library's workspace or a cache of its own.
struct KnownRange {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  std::string name, source;
};

/// What the system says is in use, and whose it is. Exactly: used = reserved + the sum of external + unattributed.
struct MemoryUse {
  std::size_t used_bytes = 0;                     ///< 0 where the system does not say.
  std::size_t peak_used_bytes = 0;                ///< Since the process began.
  std::size_t reserved_bytes = 0;                 ///< The allocators' pages.
  std::map<std::string, ExternalBytes> external;  ///< By owner; nobody with 0 bytes.
  std::size_t unattributed_bytes = 0;             ///< Of which nothing is known.
};

/// The resident bytes of this process, each mapping of /proc/self/smaps put down to its owner: `allocators`; `known`
/// ranges; code, malloc, thread_stacks, shared_memory, mapped_files. Out of malloc come the allocators' event logs,
/// their devices' traces and their registered figures. What changes meanwhile may be missed, never counted twice. Linux
/// with glibc. Thread-safe.
[[nodiscard]] MemoryUse process_memory(std::span<const CachingAllocator* const> allocators = {},
                                       std::span<const KnownRange> known = {});

}  // namespace headroom
