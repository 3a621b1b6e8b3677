#pragma once

#include <chrono>
#include <cstdint>

namespace headroom::detail {

/// Nanoseconds since it was made; monotonic.
class SteadyClock {
 public:
  [[nodiscard]] std::int64_t now_ns() const noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace headroom::detail
