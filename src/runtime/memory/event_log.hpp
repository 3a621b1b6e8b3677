#pragma once

#include <headroom/events.hpp>

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::detail {

/// The last `capacity` events, numbered densely from 0, and the names they refer to. Its memory is asked for at once,
/// so that no event can fail, but touched only as it fills.
class EventLog {
 public:
  explicit EventLog(std::size_t capacity) : capacity_(capacity), ring_(capacity > 0 ? capacity : 1) {
    events_.reserve(ring_);
  }

  /// The next event, numbered, for the caller to fill in; valid until the next call.
  [[nodiscard]] AllocatorEvent& append() noexcept {
    if (events_.size() < ring_) {
      events_.emplace_back();
    } else {
      events_[position_] = AllocatorEvent{};
    }
    AllocatorEvent& event = events_[position_];
    if (++position_ == ring_) position_ = 0;
    event.number = count_++;
    return event;
  }
  [[nodiscard]] std::uint32_t intern(std::string_view name);

  /// The kept events from `number` on, oldest first.
  [[nodiscard]] std::vector<AllocatorEvent> since(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return count_ > capacity_ ? count_ - capacity_ : 0; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// Of memory touched for events.
  [[nodiscard]] std::size_t bytes() const noexcept { return events_.size() * sizeof(AllocatorEvent); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  /// The id last found for a name at this address, if it still says the same: callers use few literals.
  struct Recent {
    const char* text = nullptr;
    std::uint32_t id = 0;
  };

  std::size_t capacity_, ring_;  ///< One event is kept where none is wanted, and never shown.
  std::uint64_t count_ = 0;
  std::size_t position_ = 0;  ///< Where the next event goes.
  std::vector<AllocatorEvent> events_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> index_;
  std::array<Recent, 64> recent_{};
};

}  // namespace headroom::detail
