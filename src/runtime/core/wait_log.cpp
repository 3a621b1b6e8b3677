#include "runtime/core/wait_log.hpp"

namespace headroom::detail {

void WaitLog::add(const IssuedWait& wait) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t number = count_.load(std::memory_order_relaxed);
  ring_[number % kKept] = wait;
  count_.store(number + 1, std::memory_order_release);
}

bool WaitLog::since(std::uint64_t from, std::vector<IssuedWait>& into) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.load(std::memory_order_relaxed);
  const std::uint64_t first = count > kKept ? count - kKept : 0;
  for (std::uint64_t number = from < first ? first : from; number < count; ++number) {
    into.push_back(ring_[number % kKept]);
  }
  return from >= first;
}

}  // namespace headroom::detail
