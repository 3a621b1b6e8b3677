#pragma once

#include <headroom/allocator.hpp>
#include <headroom/trace.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace headroom::bench {

/// One rank's run, for a trace viewer.
struct TraceSource {
  int rank = 0;
  const Trace* trace = nullptr;
  const CachingAllocator* memory = nullptr;
  std::vector<std::string> unit_names;
};

/// Writes Chrome's trace format (JSON array of events; Perfetto reads it): a process a rank; operations and waits of
/// each stream and the host's gaps as `X`, allocated bytes by category as `C`, names as `M`, and an arrow (`s`, `f`)
/// from each operation to the wait that it ended. Times in microseconds of Device::now_ns.
void write_trace(std::ostream& out, const TraceSource& source);

}  // namespace headroom::bench
