#include "runtime/memory/block_pool.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace headroom::detail {

BlockPool::Index BlockPool::make() {
  if (unused_ != kNone) {
    const Index index = unused_;
    unused_ = std::exchange(blocks_[index].after, kNone);
    return index;
  }
  blocks_.emplace_back();
  return static_cast<Index>(blocks_.size() - 1);
}

void BlockPool::drop(Index index) noexcept {
  blocks_[index] = Block{};
  blocks_[index].after = unused_;
  unused_ = index;
}

void BlockPool::link(Index index) noexcept {
  Block& block = blocks_[index];
  const std::size_t size_class = SizeClasses::of(block.bytes);
  const Index head = lists_[size_class];
  block.list_before = kNone;
  block.list_after = head;
  if (head != kNone) blocks_[head].list_before = index;
  lists_[size_class] = index;
  classes_.insert(size_class);
}

void BlockPool::unlink(Index index) noexcept {
  const Block& block = blocks_[index];
  if (block.list_after != kNone) blocks_[block.list_after].list_before = block.list_before;
  if (block.list_before != kNone) {
    blocks_[block.list_before].list_after = block.list_after;
    return;
  }
  const std::size_t size_class = SizeClasses::of(block.bytes);
  lists_[size_class] = block.list_after;
  if (block.list_after == kNone) classes_.erase(size_class);
}

/// Two neighbours, neither of them in a list, become one with the uses of both.
BlockPool::Index BlockPool::absorb(Index left, Index right) noexcept {
  Block& block = blocks_[left];
  const Block& gone = blocks_[right];
  block.bytes += gone.bytes;
  block.uses.merge(gone.uses);
  block.after = gone.after;
  if (block.after != kNone) {
    blocks_[block.after].before = left;
  } else {
    last_ = left;
  }
  drop(right);
  return left;
}

bool BlockPool::coalesces(Index index) const noexcept {
  const Block& block = blocks_[index];
  return block.after != kNone && block.state == State::free && blocks_[block.after].state == State::free &&
         block.uses.same_streams(blocks_[block.after].uses);
}

/// `index` is free and in no list; joins it with neighbours that coalesce and lists the result.
BlockPool::Index BlockPool::coalesce(Index index) noexcept {
  if (coalesces(index)) {
    const Index after = blocks_[index].after;
    unlink(after);
    absorb(index, after);
  }
  const Index before = blocks_[index].before;
  if (before != kNone && coalesces(before)) {
    unlink(before);
    index = absorb(before, index);
  }
  link(index);
  return index;
}

BlockPool::Index BlockPool::join(const Run& run) noexcept {
  const Index block = run.first;
  if (block != run.last) {
    const Index end = blocks_[run.last].after;
    unlink(block);
    while (blocks_[block].after != end) {
      unlink(blocks_[block].after);
      absorb(block, blocks_[block].after);
    }
    link(block);
  }
  blocks_[block].state = State::free;
  blocks_[block].owner = kNone;
  return block;
}

void BlockPool::take(Index index, std::size_t bytes, std::uint32_t owner) {
  const Index rest = blocks_[index].bytes > bytes ? make() : kNone;
  unlink(index);
  Block& block = blocks_[index];
  if (rest != kNone) {
    Block& remainder = blocks_[rest];
    remainder.offset = block.offset + bytes;
    remainder.bytes = block.bytes - bytes;
    remainder.uses = block.uses;
    remainder.state = State::free;
    remainder.before = index;
    remainder.after = block.after;
    (block.after != kNone ? blocks_[block.after].before : last_) = rest;
    block.after = rest;
    block.bytes = bytes;
  }
  block.state = State::used;
  block.owner = owner;
  if (rest != kNone) coalesce(rest);
}

void BlockPool::release(Index index, const DependencySet& uses, bool pending) noexcept {
  Block& block = blocks_[index];
  block.uses = uses;
  if (pending) {
    block.state = State::pending;
    link(index);
    return;
  }
  block.state = State::free;
  block.owner = kNone;
  coalesce(index);
}

void BlockPool::complete(Index index, const DependencySet& uses) noexcept {
  unlink(index);
  Block& block = blocks_[index];
  block.state = State::free;
  block.owner = kNone;
  block.uses = uses;
  coalesce(index);
}

void BlockPool::grow(std::size_t bytes) {
  const Index index = make();
  Block& block = blocks_[index];
  block.offset = end_;
  block.bytes = bytes;
  block.state = State::free;
  block.before = last_;
  (last_ != kNone ? blocks_[last_].after : first_) = index;
  last_ = index;
  end_ += bytes;
  coalesce(index);
}

void BlockPool::shrink(std::size_t bytes) noexcept {
  end_ -= bytes;
  while (last_ != kNone && blocks_[last_].offset + blocks_[last_].bytes > end_) {
    unlink(last_);
    Block& block = blocks_[last_];
    if (block.offset < end_) {
      block.bytes = end_ - block.offset;
      link(last_);
      return;
    }
    const Index gone = last_;
    last_ = block.before;
    (last_ != kNone ? blocks_[last_].after : first_) = kNone;
    drop(gone);
  }
}

std::size_t BlockPool::largest_free_bytes() const noexcept {
  std::size_t largest = 0, run = 0;
  for (Index i = first_; i != kNone; i = blocks_[i].after) {
    run = blocks_[i].state == State::free ? run + blocks_[i].bytes : 0;
    largest = std::max(largest, run);
  }
  return largest;
}

std::size_t BlockPool::longest_run_bytes() const noexcept {
  std::size_t longest = 0, run = 0;
  for (Index i = first_; i != kNone; i = blocks_[i].after) {
    run = blocks_[i].state == State::used ? 0 : run + blocks_[i].bytes;
    longest = std::max(longest, run);
  }
  return longest;
}

std::size_t BlockPool::last_run_bytes() const noexcept {
  std::size_t run = 0;
  for (Index i = last_; i != kNone && blocks_[i].state != State::used; i = blocks_[i].before) run += blocks_[i].bytes;
  return run;
}

namespace {
void require(bool holds, const char* invariant, std::size_t offset) {
  if (!holds) throw std::logic_error("block pool: " + std::string(invariant) + ", at offset " + std::to_string(offset));
}
}  // namespace

void BlockPool::check() const {
  std::size_t at = 0, linked = 0;
  Index before = kNone;
  for (Index i = first_; i != kNone; before = i, i = blocks_[i].after) {
    const Block& block = blocks_[i];
    require(block.offset == at, "blocks do not tile the region", at);
    require(block.bytes > 0 && block.bytes % kGranuleBytes == 0, "a block is not whole granules", at);
    require(block.before == before, "neighbours disagree", at);
    require((block.owner == kNone) == (block.state == State::free), "owner and state disagree", at);
    require(before == kNone || !coalesces(before), "two free neighbours of the same streams", at);
    if (block.state != State::used) ++linked;
    at += block.bytes;
  }
  require(at == end_, "blocks do not reach the end", at);
  require(before == last_, "the last block is not the last", at);
  check_lists(linked);
}

void BlockPool::check_lists(std::size_t linked) const {
  for (std::size_t c = 0; c < SizeClasses::kCount; ++c) {
    require(classes_.contains(c) == (lists_[c] != kNone), "class bitmap disagrees with its list, class", c);
    Index before = kNone;
    for (Index i = lists_[c]; i != kNone; before = i, i = blocks_[i].list_after) {
      const Block& block = blocks_[i];
      require(block.list_before == before, "list links disagree", block.offset);
      require(block.state != State::used, "a used block is in a list", block.offset);
      require(SizeClasses::of(block.bytes) == c, "a block is in the wrong class", block.offset);
      require(linked-- > 0, "a block is in two lists", block.offset);
    }
  }
  require(linked == 0, "a free block is in no list", end_);
}

}  // namespace headroom::detail
