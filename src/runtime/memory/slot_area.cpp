#include "runtime/memory/slot_area.hpp"

#include "runtime/memory/size_classes.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace headroom::detail {

std::size_t SlotArea::find(std::size_t offset) const noexcept {
  const auto found = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [offset](const Range& range) { return range.end() <= offset; });
  return static_cast<std::size_t>(found - ranges_.begin());
}

std::span<const SlotArea::Range> SlotArea::overlapping(std::size_t offset, std::size_t bytes) const noexcept {
  const std::size_t begin = find(offset);
  std::size_t end = begin;
  while (end < ranges_.size() && ranges_[end].offset < offset + bytes) ++end;
  return std::span<const Range>(ranges_).subspan(begin, end - begin);
}

bool SlotArea::any_live() const noexcept {
  return std::ranges::any_of(ranges_, [](const Range& range) { return range.state == State::live; });
}

void SlotArea::occupy(std::size_t offset, std::size_t bytes, std::uint32_t allocation, std::uint32_t name) {
  const std::size_t begin = find(offset), count = overlapping(offset, bytes).size();
  const std::size_t end = offset + bytes;
  std::array<Range, 3> fresh;
  std::size_t made = 0;
  if (count > 0 && ranges_[begin].offset < offset) {
    fresh[made] = ranges_[begin];
    fresh[made].bytes = offset - fresh[made].offset;
    ++made;
  }
  Range live;
  live.offset = offset;
  live.bytes = bytes;
  live.allocation = allocation;
  live.name = name;
  for (std::size_t i = begin; i < begin + count; ++i) live.uses.merge(ranges_[i].uses);
  fresh[made++] = live;
  if (count > 0 && ranges_[begin + count - 1].end() > end) {
    Range right = ranges_[begin + count - 1];
    right.bytes = right.end() - end;
    right.offset = end;
    fresh[made++] = right;
  }
  const auto at = ranges_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto next = ranges_.erase(at, at + static_cast<std::ptrdiff_t>(count));
  ranges_.insert(next, fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(made));
}

void SlotArea::release(std::size_t offset, const DependencySet& uses, bool pending) noexcept {
  Range& range = ranges_[find(offset)];
  range.uses = uses;
  range.state = pending ? State::pending : State::over;
  if (!pending) range.allocation = kNone;
}

void SlotArea::complete(std::size_t offset, const DependencySet& uses) noexcept {
  Range& range = ranges_[find(offset)];
  range.uses = uses;
  range.state = State::over;
  range.allocation = kNone;
}

void SlotArea::check(std::size_t committed_bytes) const {
  std::size_t at = 0;
  for (const Range& range : ranges_) {
    const bool owned = range.allocation != kNone;
    if (range.offset < at || range.bytes == 0 || range.bytes % kGranuleBytes != 0 || range.end() > committed_bytes) {
      throw std::logic_error("slot area: ranges overlap or leave the area, at offset " + std::to_string(range.offset));
    }
    if (owned == (range.state == State::over)) {
      throw std::logic_error("slot area: owner and state disagree, at offset " + std::to_string(range.offset));
    }
    at = range.end();
  }
}

}  // namespace headroom::detail
