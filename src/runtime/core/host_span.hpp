#pragma once

#include <headroom/device.hpp>
#include <headroom/trace.hpp>

#include <utility>

namespace headroom::detail {

/// Adds a HostSpan over its own lifetime to the device's trace.
class HostSpanTimer {
 public:
  HostSpanTimer(Device device, HostCause cause)
      : device_(std::move(device)), cause_(cause), start_ns_(device_.now_ns()) {}
  HostSpanTimer(const HostSpanTimer&) = delete;
  HostSpanTimer& operator=(const HostSpanTimer&) = delete;
  ~HostSpanTimer() { device_.trace().add(HostSpan{cause_, start_ns_, device_.now_ns()}); }

 private:
  Device device_;
  HostCause cause_;
  std::int64_t start_ns_;
};

}  // namespace headroom::detail
