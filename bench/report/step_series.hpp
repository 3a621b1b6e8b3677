#pragma once

#include "report/step_detail.hpp"

#include <vector>

namespace headroom::bench {

/// Bytes at an instant, which holds until the next one.
struct StepInstant {
  double x = 0;
  TagBytes tag_bytes{};
  std::size_t allocated_bytes = 0, pending_bytes = 0, reserved_bytes = 0;
};

/// A step's memory along one axis: the events' numbers, or device time in milliseconds after its first operation,
/// where a block lives until its last use is complete and nothing is pending.
struct StepSeries {
  bool is_device_time = false;
  double begin = 0, end = 0;
  std::vector<StepInstant> instants;
  std::size_t highest = 0;  ///< The first instant with the most bytes allocated.
};

[[nodiscard]] StepSeries step_series(const StepDetail& detail, bool device_time);

}  // namespace headroom::bench
