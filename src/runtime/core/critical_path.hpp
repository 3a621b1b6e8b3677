#pragma once

#include <headroom/trace.hpp>

#include <cstdint>
#include <vector>

namespace headroom::detail {

/// Which stream does what.
class Roles {
 public:
  explicit Roles(const std::vector<StreamInfo>& streams);
  /// Streams that the trace was not told about count as compute.
  [[nodiscard]] StreamRole of(StreamId stream) const noexcept;
  [[nodiscard]] bool communicates(StreamId stream) const noexcept {
    return of(stream) == StreamRole::gather || of(stream) == StreamRole::reduce;
  }

 private:
  std::vector<StreamRole> roles_;  // by stream
};

/// The four parts add up to the window. Transfers, and the gaps between an operation and what bound it, count as host.
struct CriticalPath {
  std::int64_t compute_ns = 0, gather_ns = 0, reduce_ns = 0, host_ns = 0;
};

/// Walks back from the end of the window along binding predecessors (see TraceSummary). Where the host's issue binds,
/// the walk follows the host back to a throttle that waited for an operation, and goes on from there.
[[nodiscard]] CriticalPath critical_path(const std::vector<OperationRecord>& records,
                                         const std::vector<HostSpan>& host_spans, const Roles& roles,
                                         std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace headroom::detail
