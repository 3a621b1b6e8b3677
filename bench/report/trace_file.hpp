#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headroom::bench {

/// Of each rank; what is left out is the oldest.
struct TraceLimits {
  std::size_t operations = std::size_t{1} << 19;
  std::size_t lifetimes = std::size_t{1} << 16;
  std::size_t counter_samples = std::size_t{1} << 16;  ///< And one at each step's begin.
};

/// Writes recordings of one run as Chrome's trace format (JSON; Perfetto reads it), a process a rank, in microseconds
/// of the host's steady clock, so that ranks of one host align: operations and waits of each stream and the host's gaps
/// as `X`, an arrow (`s`, `f`) from an operation to the wait that it ended, bytes by category and as allocated +
/// pending + cached as `C`, the life of each buffer of at least 1 MiB as `b`, `e`. Where the log lost events, memory
/// ends there. Throws: as RecordingReader, before anything is written; InputOutputError.
void write_trace(const std::vector<std::string>& recordings, const std::string& path, const TraceLimits& limits = {});

}  // namespace headroom::bench
