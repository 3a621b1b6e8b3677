#pragma once

#include <headroom/stream.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace headroom::detail {

/// Work of `consumer` from its ticket `at` on comes after `ticket` of `producer`.
struct IssuedWait {
  StreamId consumer = 0;
  Ticket at = 0;
  StreamId producer = 0;
  Ticket ticket = 0;
};

/// The last waits that a device's streams were given, in the order given: whoever decides by `knows` can write down
/// what it knew. Thread-safe.
class WaitLog {
 public:
  static constexpr std::uint64_t kKept = 1024;

  void add(const IssuedWait& wait);
  /// A stream ended: what it was given is over for everyone.
  void note_end() noexcept { version_.fetch_add(1, std::memory_order_release); }
  /// Changes whenever some stream may be known to come after more than before.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// Appends the waits from the `from`-th on to `into`; the number of the first of them, which is above `from` where
  /// some are not kept any more.
  [[nodiscard]] std::uint64_t since(std::uint64_t from, std::vector<IssuedWait>& into) const;

 private:
  mutable std::mutex mutex_;
  std::array<IssuedWait, kKept> ring_{};
  std::atomic<std::uint64_t> count_{0}, version_{1};
};

}  // namespace headroom::detail
