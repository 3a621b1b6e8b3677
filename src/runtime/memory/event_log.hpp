#pragma once

#include <headroom/events.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::detail {

/// The last `capacity` events, numbered densely from 0, and the names they refer to. Memory is taken as it fills.
class EventLog {
 public:
  explicit EventLog(std::size_t capacity) : capacity_(capacity), ring_(capacity > 0 ? capacity : 1) {}

  /// The next event, numbered, for the caller to fill in; valid until the next call.
  [[nodiscard]] AllocatorEvent& append() {
    if (position_ % kChunk == 0) enter_chunk();
    AllocatorEvent& event = chunk_[position_ % kChunk];
    if (++position_ == ring_) position_ = 0;
    event = AllocatorEvent{};
    event.number = count_++;
    return event;
  }
  [[nodiscard]] std::uint32_t intern(std::string_view name);

  /// The kept events from `number` on, oldest first.
  [[nodiscard]] std::vector<AllocatorEvent> since(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return count_ > capacity_ ? count_ - capacity_ : 0; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// Of memory taken for events.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return std::min(chunks_.size() * kChunk, ring_) * sizeof(AllocatorEvent);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  static constexpr std::size_t kChunk = 4096;  ///< Events.
  void enter_chunk();

  /// The id last found for a name at this address, if it still says the same: callers use few literals.
  struct Recent {
    const char* text = nullptr;
    std::uint32_t id = 0;
  };

  std::size_t capacity_, ring_;  ///< One event is kept where none is wanted, and never shown.
  std::uint64_t count_ = 0;
  std::size_t position_ = 0;         ///< Where the next event goes.
  AllocatorEvent* chunk_ = nullptr;  ///< That of position_.
  std::vector<std::unique_ptr<AllocatorEvent[]>> chunks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> index_;
  std::array<Recent, 64> recent_{};
};

}  // namespace headroom::detail
