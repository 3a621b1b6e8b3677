#pragma once

#include "runtime/memory/dependency_set.hpp"
#include "runtime/memory/size_classes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom::detail {

/// Blocks that tile [0, end) of one region: offsets and sizes only, no memory and no device. Sizes are multiples of the
/// granule. `pending` blocks were freed but still belong to their owner: they can be found, and are never coalesced.
class BlockPool {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;
  static constexpr int kScan = 8;  ///< Blocks of a class that find() looks at.
  enum class State : std::uint8_t { free, pending, used };

  struct Block {
    std::size_t offset = 0, bytes = 0;
    DependencySet uses;                             ///< Of a free or pending block.
    Index before = kNone, after = kNone;            ///< Neighbours by address.
    Index list_before = kNone, list_after = kNone;  ///< Neighbours in the size class.
    std::uint32_t owner = kNone;                    ///< Of a used or pending block.
    State state = State::used;
  };

  BlockPool() { lists_.fill(kNone); }

  /// The smallest block, then the lowest, of those looked at in the first class that has one for which
  /// `ready(const Block&)` holds; kNone if there is none. At most `scan` blocks of a class are looked at.
  template <class Ready>
  [[nodiscard]] Index find(std::size_t bytes, Ready&& ready, int scan = kScan) const;

  /// Makes room for one take() and one grow(), which then do not throw.
  void prepare() {
    if (blocks_.capacity() - blocks_.size() < kSpare) blocks_.reserve(2 * blocks_.capacity() + 64);
  }
  /// Makes the first `bytes` of a free or pending block used; the rest is free with the same uses.
  void take(Index index, std::size_t bytes, std::uint32_t owner);
  /// A used block becomes pending, or free and coalesced.
  void release(Index index, const DependencySet& uses, bool pending) noexcept;
  /// A pending block becomes free with the uses given, and coalesces.
  void complete(Index index, const DependencySet& uses) noexcept;
  /// Forgets the uses of a free block: the host has seen their end.
  void settle(Index index) noexcept { blocks_[index].uses.clear(); }

  /// Adds `bytes` at the end, as part of a free last block (`join`) or as a block of its own; returns that block.
  Index grow(std::size_t bytes, bool join);
  /// Drops the last `bytes`, which must be free.
  void shrink(std::size_t bytes) noexcept;

  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] const Block& operator[](Index index) const noexcept { return blocks_[index]; }
  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] Index last() const noexcept { return last_; }

  [[nodiscard]] std::size_t largest_free_bytes() const noexcept;  ///< Free blocks, not pending ones.
  /// Bytes of the longest, and of the last, run of blocks that are free or pending.
  [[nodiscard]] std::size_t longest_run_bytes() const noexcept;
  [[nodiscard]] std::size_t last_run_bytes() const noexcept;
  /// Throws: std::logic_error naming the first broken invariant.
  void check() const;

 private:
  [[nodiscard]] Index make();
  void drop(Index index) noexcept;
  void link(Index index) noexcept;    ///< Into its size class.
  void unlink(Index index) noexcept;  ///< Out of it.
  Index absorb(Index left, Index right) noexcept;
  Index coalesce(Index index) noexcept;
  void check_lists(std::size_t linked) const;

  static constexpr std::size_t kSpare = 2;
  std::vector<Block> blocks_;
  Index unused_ = kNone;  ///< Records to use again, linked by `after`.
  Index first_ = kNone, last_ = kNone;
  std::size_t end_ = 0;
  SizeClasses classes_;
  std::array<Index, SizeClasses::kCount> lists_;
};

template <class Ready>
BlockPool::Index BlockPool::find(std::size_t bytes, Ready&& ready, int scan) const {
  for (std::size_t c = classes_.next(SizeClasses::of(bytes)); c < SizeClasses::kCount; c = classes_.next(c + 1)) {
    Index best = kNone;
    int left = scan;
    for (Index i = lists_[c]; i != kNone && left > 0; i = blocks_[i].list_after, --left) {
      const Block& block = blocks_[i];
      if (block.bytes < bytes) continue;
      if (best != kNone) {
        const Block& other = blocks_[best];
        if (block.bytes > other.bytes || (block.bytes == other.bytes && block.offset > other.offset)) continue;
      }
      if (ready(block)) best = i;
    }
    if (best != kNone) return best;
  }
  return kNone;
}

}  // namespace headroom::detail
