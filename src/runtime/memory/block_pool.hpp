#pragma once

#include "runtime/memory/dependency_set.hpp"
#include "runtime/memory/size_classes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom::detail {

/// Blocks that tile [0, end) of one region: offsets and sizes only, no memory and no device. Sizes are multiples of the
/// granule. `pending` blocks were freed but still belong to their owner. Free neighbours coalesce at once where the
/// same streams used them; where not, only as a Run that somebody wants, so that what one stream may use now is not
/// spoilt by a neighbour that it must wait for.
class BlockPool {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;
  static constexpr int kScan = 8;  ///< Blocks of a class that find() looks at.
  enum class State : std::uint8_t { free, pending, used };

  struct Block {
    std::size_t offset = 0, bytes = 0;
    DependencySet uses;                             ///< Its last uses; of a used block: those before it was taken.
    Index before = kNone, after = kNone;            ///< Neighbours by address.
    Index list_before = kNone, list_after = kNone;  ///< Neighbours in the size class.
    std::uint32_t owner = kNone;                    ///< Of a used or pending block.
    State state = State::used;
  };

  /// Neighbours, none of them used.
  struct Run {
    Index first = kNone, last = kNone;
    std::size_t bytes = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return first != kNone; }
  };

  BlockPool() { lists_.fill(kNone); }

  /// The smallest block, then the lowest, of those looked at in the first class that has one for which
  /// `ready(const Block&)` holds; behind the last used block, where pages may go back, the lowest. Else so much of the
  /// smallest, then the lowest, run of such blocks as is needed. Falsy if there is none.
  template <class Ready>
  [[nodiscard]] Run find(std::size_t bytes, Ready&& ready) const;
  /// All of the run at the end for whose blocks `ready(const Block&)` holds.
  template <class Ready>
  [[nodiscard]] Run last_run(Ready&& ready) const;
  /// Makes the run one free block, with the uses of all.
  Index join(const Run& run) noexcept;

  /// Makes room for one take() and one grow(), which then do not throw.
  void prepare() {
    if (blocks_.capacity() - blocks_.size() < kSpare) blocks_.reserve(2 * blocks_.capacity() + 64);
  }
  /// Makes the first `bytes` of a free block used; the rest is free with the same uses.
  void take(Index index, std::size_t bytes, std::uint32_t owner);
  /// A used block becomes pending, or free and coalesced with its like.
  void release(Index index, const DependencySet& uses, bool pending) noexcept;
  /// A free or pending block becomes free with the uses given, and coalesces.
  void complete(Index index, const DependencySet& uses) noexcept;
  /// A free or pending block becomes free without uses, and coalesces: the host has seen their end.
  void settle(Index index) noexcept { complete(index, DependencySet{}); }

  /// Adds a free block without uses at the end.
  void grow(std::size_t bytes);
  /// Drops the last `bytes`, which must be free.
  void shrink(std::size_t bytes) noexcept;

  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] const Block& operator[](Index index) const noexcept { return blocks_[index]; }
  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] Index last() const noexcept { return last_; }

  [[nodiscard]] std::size_t largest_free_bytes() const noexcept;  ///< The longest run of free, not pending, blocks.
  /// Bytes of the longest, and of the last, run of blocks that are free or pending.
  [[nodiscard]] std::size_t longest_run_bytes() const noexcept;
  [[nodiscard]] std::size_t last_run_bytes() const noexcept;
  /// Throws: std::logic_error naming the first broken invariant.
  void check() const;

 private:
  template <class Ready>
  [[nodiscard]] Index find_block(std::size_t bytes, Ready&& ready) const;
  template <class Ready>
  [[nodiscard]] Run find_run(std::size_t bytes, Ready&& ready) const;
  [[nodiscard]] bool coalesces(Index index) const noexcept;  ///< With the block after it.
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
BlockPool::Run BlockPool::find(std::size_t bytes, Ready&& ready) const {
  const Index tail = last_run([](const Block&) { return true; }).first;
  const std::size_t end = tail != kNone ? blocks_[tail].offset : end_;
  Index block = find_block(bytes, [&](const Block& each) { return each.offset < end && ready(each); });
  for (Index i = tail; block == kNone && i != kNone; i = blocks_[i].after) {
    if (blocks_[i].bytes >= bytes && ready(blocks_[i])) block = i;
  }
  return block != kNone ? Run{block, block, blocks_[block].bytes} : find_run(bytes, ready);
}

template <class Ready>
BlockPool::Index BlockPool::find_block(std::size_t bytes, Ready&& ready) const {
  for (std::size_t c = classes_.next(SizeClasses::of(bytes)); c < SizeClasses::kCount; c = classes_.next(c + 1)) {
    Index best = kNone;
    int left = kScan;
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

template <class Ready>
BlockPool::Run BlockPool::find_run(std::size_t bytes, Ready&& ready) const {
  Run best, run, enough;  // `enough`: the beginning of `run` that suffices
  const auto end_run = [&] {
    if (enough && (!best || run.bytes < best.bytes)) best = Run{enough.first, enough.last, run.bytes};
    run = enough = Run{};
  };
  for (Index i = first_; i != kNone; i = blocks_[i].after) {
    const Block& block = blocks_[i];
    if (block.state == State::used || !ready(block)) {
      if (run) end_run();
      continue;
    }
    if (!run) run.first = i;
    run.last = i;
    run.bytes += block.bytes;
    if (!enough && run.bytes >= bytes) enough = run;
  }
  end_run();
  return best;
}

template <class Ready>
BlockPool::Run BlockPool::last_run(Ready&& ready) const {
  Run run;
  for (Index i = last_; i != kNone && blocks_[i].state != State::used && ready(blocks_[i]); i = blocks_[i].before) {
    if (!run) run.last = i;
    run.first = i;
    run.bytes += blocks_[i].bytes;
  }
  return run;
}

}  // namespace headroom::detail
