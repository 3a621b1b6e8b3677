#include "runtime/core/wait_log.hpp"

#include <algorithm>

namespace headroom::detail {

void WaitLog::add(const IssuedWait& wait) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t number = count_.load(std::memory_order_relaxed);
  ring_[number % kKept] = wait;
  count_.store(number + 1, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

std::uint64_t WaitLog::since(std::uint64_t from, std::vector<IssuedWait>& into) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.load(std::memory_order_relaxed);
  const std::uint64_t first = std::max(from, count > kKept ? count - kKept : 0);
  for (std::uint64_t number = first; number < count; ++number) into.push_back(ring_[number % kKept]);
  return first;
}

}  // namespace headroom::detail
