#pragma once

#include <headroom/events.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::detail {

/// The last `capacity` events, numbered densely from 0, and the names they refer to. Memory is taken as it fills.
class EventLog {
 public:
  explicit EventLog(std::size_t capacity) : capacity_(capacity) {}

  /// Numbers the event and keeps it; returns its number.
  std::uint64_t add(AllocatorEvent event);
  [[nodiscard]] std::uint32_t intern(std::string_view name);

  /// The kept events from `number` on, oldest first.
  [[nodiscard]] std::vector<AllocatorEvent> since(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return count_ > capacity_ ? count_ - capacity_ : 0; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  static constexpr std::size_t kChunk = 4096;  ///< Events.

  std::size_t capacity_;
  std::uint64_t count_ = 0;
  std::size_t position_ = 0;  ///< Where the next event goes.
  std::vector<std::unique_ptr<AllocatorEvent[]>> chunks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> index_;
};

}  // namespace headroom::detail
