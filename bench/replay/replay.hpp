#pragma once

#include <headroom/recording.hpp>

#include "replay/own_replay.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom::bench {

/// Recorded events that can be read again and again.
struct ReplaySource {
  using Take = std::function<void(std::span<const AllocatorEvent> events, std::span<const std::string> names)>;
  RecordingInfo info;
  /// Calls `take` with all events in order, some at a time; the recorded statistics, if it has them.
  std::function<NamedStatistics(const Take& take)> read;
};

/// Throws: as RecordingReader.
[[nodiscard]] ReplaySource replay_source(const std::string& path);
[[nodiscard]] ReplaySource replay_source(const Recording& recording);  ///< Which must outlive it.

enum class ReplayPolicy : std::uint8_t { ours, native, expandable };
[[nodiscard]] const char* name_of(ReplayPolicy policy) noexcept;

struct ReplayOptions {
  std::size_t limit_bytes = 0;  ///< 0: the recorded one.
  int repeats = 3;              ///< Timed runs; the fastest counts.
};

/// Two moments' reserved bytes: the first step of which more is asked than the first ones, and the last.
struct ReplayGrowth {
  std::int64_t after_steps = 0;
  std::int64_t bytes = 0;
};

struct ReplayFigures {
  ReplayPolicy policy = ReplayPolicy::ours;
  std::size_t limit_bytes = 0;
  double ns_per_operation = 0;   ///< All calls' time by allocations and frees. Without device, marks and clock.
  std::uint64_t operations = 0;  ///< Allocations and frees.
  std::size_t live_peak = 0, reserved_peak = 0, segments = 0;
  double fragmentation_peak = 0;             ///< 1 - live_peak / reserved_peak.
  std::optional<double> fragmentation_free;  ///< Mean of (free - largest free) / free, while there is free memory.
  std::optional<double> free_concentration;  ///< Mean of sum free_i^2 / (sum free_i)^2: 1 is one piece.
  std::uint64_t refused = 0;
  std::optional<std::uint64_t> first_refused;  ///< The event.
  std::vector<std::size_t> reserved_at_steps;  ///< When each step began.
  std::optional<ReplayGrowth> growth;
  std::optional<double> drift;                           ///< Of reserved bytes, from after 20 steps to the last.
  std::array<RegionStatistics, kRegionCount> regions{};  ///< Of ours.

  [[nodiscard]] double reserved_over_live() const noexcept {
    return live_peak == 0 ? 0 : static_cast<double>(reserved_peak) / static_cast<double>(live_peak);
  }
};

struct ExactReplay {
  std::uint64_t events = 0;
  std::optional<Difference> difference;  ///< None: addresses, events and statistics are as recorded.
  bool lost_waits = false;
};

/// The recorded settings once more, event by event. Throws: InvalidInput; BadFile.
[[nodiscard]] ExactReplay replay_exactly(const ReplaySource& source);
/// Throws: InvalidInput; BadFile.
[[nodiscard]] ReplayFigures replay(const ReplaySource& source, ReplayPolicy policy, const ReplayOptions& options = {});

}  // namespace headroom::bench
