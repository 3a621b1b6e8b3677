#pragma once

#include <headroom/stream.hpp>

#include <array>
#include <span>

namespace headroom::detail {

/// Work of a stream, up to and with a ticket.
struct StreamUse {
  StreamId stream = 0;
  Ticket ticket = 0;
  friend bool operator==(const StreamUse&, const StreamUse&) noexcept = default;
};

/// What must be over before a range of bytes may be used again: the highest ticket of each stream. More streams than
/// fit collapse it to "everything that was ever freed", which the owner of the streams' ceilings must interpret.
class DependencySet {
 public:
  static constexpr std::size_t kCapacity = 4;

  void add(StreamId stream, Ticket ticket) noexcept {
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (uses_[i].stream != stream) continue;
      if (uses_[i].ticket < ticket) uses_[i].ticket = ticket;
      return;
    }
    insert(stream, ticket);
  }
  void merge(const DependencySet& other) noexcept {
    if (other.collapsed_) collapse();
    for (const StreamUse& use : other.uses()) add(use.stream, use.ticket);
  }
  void collapse() noexcept {
    size_ = 0;
    collapsed_ = true;
  }
  void clear() noexcept {
    size_ = 0;
    collapsed_ = false;
  }

  [[nodiscard]] bool collapsed() const noexcept { return collapsed_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0 && !collapsed_; }
  /// Sorted by stream; empty if collapsed.
  [[nodiscard]] std::span<const StreamUse> uses() const noexcept { return {uses_.data(), size_}; }
  /// The ticket named for `stream`, or 0.
  [[nodiscard]] Ticket ticket_of(StreamId stream) const noexcept {
    for (const StreamUse& use : uses()) {
      if (use.stream == stream) return use.ticket;
    }
    return 0;
  }
  /// True where both name the same streams, whatever the tickets.
  [[nodiscard]] bool same_streams(const DependencySet& other) const noexcept {
    if (size_ != other.size_ || collapsed_ != other.collapsed_) return false;
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (uses_[i].stream != other.uses_[i].stream) return false;
    }
    return true;
  }
  friend bool operator==(const DependencySet& a, const DependencySet& b) noexcept;

 private:
  void insert(StreamId stream, Ticket ticket) noexcept;

  std::array<StreamUse, kCapacity> uses_;
  std::uint32_t size_ = 0;
  bool collapsed_ = false;
};

}  // namespace headroom::detail
