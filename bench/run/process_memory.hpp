#pragma once

#include <cstddef>

namespace headroom::bench {

/// What the system says of this process (Linux, /proc/self). 0 where it says nothing.
struct ProcessMemory {
  std::size_t resident_bytes = 0, peak_resident_bytes = 0;
};
[[nodiscard]] ProcessMemory process_memory();

}  // namespace headroom::bench
