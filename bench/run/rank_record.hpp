#pragma once

#include <headroom/allocator.hpp>
#include <headroom/trace.hpp>

#include "run/memory_moment.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace headroom::bench {

/// A step that every rank committed.
struct StepRecord {
  std::int64_t step = 0;
  double loss = 0, gradient_norm = 0, seconds = 0;
  bool skipped = false;     ///< Gradients were not finite: nothing was updated.
  std::int64_t tokens = 0;  ///< Of all ranks.
};

/// The first step of a run of `steps` that its statistics count: a first step pays for what later ones find ready.
[[nodiscard]] constexpr std::int64_t first_measured_step(std::int64_t steps) noexcept { return steps > 2 ? 1 : 0; }

/// What the collectives of a step were, on one rank.
struct CommunicationCounts {
  double all_gathers = 0, reduce_scatters = 0, all_reduces = 0, bytes_sent = 0, bytes_received = 0;
};

/// Was each visit's gather complete before compute needed it? Slack: how long before; negative where compute waited.
struct Availability {
  std::int64_t visits = 0, late = 0;
  std::optional<double> min_slack_seconds;
};

/// What one rank measured. Nothing of a step whose trace is incomplete is in the means; with no measured step they
/// are unknown. Times and counts are means over the measured steps. Memory is that of the training itself,
/// before anything that a report needs was computed.
struct RankRecord {
  std::int64_t measured_steps = 0;
  TraceSummary times;
  CommunicationCounts communication;
  Availability availability;
  std::uint64_t throttle_waits = 0;  ///< Of all steps; unknown where records were dropped.
  double throttle_seconds = 0;
  std::uint64_t dropped_trace_records = 0;

  MemoryStatistics memory;
  MemoryPeak peak;
  std::vector<MemoryMoment> memory_use;
  int parameter_sets_peak = 0, gradient_sets_peak = 0;

  std::optional<double> gemm_flops_per_second;  ///< None: not replayed.
};

}  // namespace headroom::bench
