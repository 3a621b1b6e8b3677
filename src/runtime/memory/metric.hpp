#pragma once

#include <headroom/memory_statistics.hpp>

namespace headroom::detail {

inline void increase(Metric& metric, std::size_t by) noexcept {
  metric.current += by;
  metric.allocated += by;
  if (metric.current > metric.peak) metric.peak = metric.current;
}
inline void decrease(Metric& metric, std::size_t by) noexcept {
  metric.current -= by;
  metric.freed += by;
}

}  // namespace headroom::detail
