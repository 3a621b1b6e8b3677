#pragma once

#include "runtime/memory/dependency_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom::detail {

/// The planned part of the communication region: disjoint ranges that are, or once were, in use. Offsets only. A range
/// that nobody uses any more stays, with the uses that its next user must be ordered after.
class SlotArea {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { live, pending, over };

  struct Range {
    std::size_t offset = 0, bytes = 0;
    DependencySet uses;                ///< Its last uses; of a live range: those before it was occupied.
    std::uint32_t allocation = kNone;  ///< Of a live or pending range.
    std::uint32_t name = 0;
    State state = State::live;
    [[nodiscard]] std::size_t end() const noexcept { return offset + bytes; }
  };

  [[nodiscard]] std::span<const Range> overlapping(std::size_t offset, std::size_t bytes) const noexcept;
  [[nodiscard]] std::span<const Range> ranges() const noexcept { return ranges_; }
  [[nodiscard]] const Range& at(std::size_t offset) const noexcept { return ranges_[find(offset)]; }
  [[nodiscard]] bool any_live() const noexcept;

  /// Makes room for one occupy(), which then does not throw.
  void prepare() {
    if (ranges_.capacity() - ranges_.size() < 2) ranges_.reserve(2 * ranges_.capacity() + 16);
  }
  /// A live range, in place of those parts of ranges that are over and lie within it.
  void occupy(std::size_t offset, std::size_t bytes, std::uint32_t allocation, std::uint32_t name);
  /// The range that begins at `offset` is released.
  void release(std::size_t offset, const DependencySet& uses, bool pending) noexcept;
  /// The range's uses are known to be ordered; `uses` is what is left to remember of them.
  void complete(std::size_t offset, const DependencySet& uses) noexcept;
  /// Drops the first range, which is over.
  void forget_first() noexcept { ranges_.erase(ranges_.begin()); }
  /// Throws: std::logic_error naming the first broken invariant.
  void check(std::size_t committed_bytes) const;

 private:
  [[nodiscard]] std::size_t find(std::size_t offset) const noexcept;  ///< The first range that ends after `offset`.
  std::vector<Range> ranges_;                                         ///< Sorted, disjoint.
};

}  // namespace headroom::detail
