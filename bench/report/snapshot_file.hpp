#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace headroom::bench {

struct SnapshotOptions {
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();  ///< Without: from the beginning.
  std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
  std::size_t max_entries = std::size_t{1} << 18;  ///< Of the trace; the last ones are kept, and the file says so.
};

/// Writes the memory snapshot (PyTorch's pickle, for pytorch.org/memory_viz) of one rank's recording: the blocks at the
/// end of the last step, and what happened from the first step on, after all that was there before it. Its device 0 is
/// that rank; views are no blocks. A frame is unit:step:buffer, and the step's phase below it. Throws: as
/// RecordingReader; InputOutputError.
void write_snapshot(const std::string& recording, const std::string& path, const SnapshotOptions& options = {});

}  // namespace headroom::bench
