#pragma once

#include <headroom/recording.hpp>

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

namespace headroom::bench {

/// Where an entry of a snapshot comes from: indices that its frames are made of.
struct SnapshotSite {
  std::uint32_t name = 0, mark = 0;  ///< Of the buffer; of the last unit mark. Into the recording's names.
  std::int32_t unit = -1;
  std::int64_t step = -1;
  friend bool operator<(const SnapshotSite& a, const SnapshotSite& b) {
    return std::tie(a.name, a.mark, a.unit, a.step) < std::tie(b.name, b.mark, b.unit, b.step);
  }
};

struct SnapshotBlock {
  std::uint64_t address = 0, bytes = 0, requested_bytes = 0;
  StreamId stream = 0;
  Tag tag = Tag::other;
  bool pending = false;
  SnapshotSite site;
};

struct SnapshotEntry {
  enum class Action : std::uint8_t { alloc, free_requested, free_completed, segment_map, segment_unmap, oom, snapshot };
  Action action = Action::alloc;
  Tag tag = Tag::other;
  StreamId stream = 0;
  std::uint64_t address = 0;  ///< Of oom: the bytes that the device had free.
  std::uint64_t bytes = 0;
  std::int64_t time_us = 0;
  SnapshotSite site;
};

/// One rank's blocks and mapped ranges at an instant, and the entries since a keyframe.
class SnapshotState {
 public:
  SnapshotState(const RecordingReader& reader, std::size_t max_entries) : reader_(reader), max_entries_(max_entries) {}

  /// Event `index` of the reader's. Throws: BadFile where a block lies outside what is mapped, or over another.
  void apply(std::size_t index);
  /// Forgets the entries, and says with new ones how all that is there came to be.
  void begin_window();
  void end_window() { add(SnapshotEntry::Action::snapshot, {}, 0); }

  [[nodiscard]] std::int64_t step() const noexcept { return site_.step; }
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& mapped() const noexcept { return mapped_; }
  /// By address.
  [[nodiscard]] const std::map<std::uint64_t, SnapshotBlock>& blocks() const noexcept { return blocks_; }
  [[nodiscard]] const std::deque<SnapshotEntry>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }

 private:
  void add(SnapshotEntry::Action action, const SnapshotBlock& block, std::uint64_t bytes);
  void begin(const AllocatorEvent& event, std::size_t index);
  void end(const AllocatorEvent& event);
  void map(const AllocatorEvent& event, std::size_t index);
  void unmap(const AllocatorEvent& event, std::size_t index);
  SnapshotBlock* find(const AllocatorEvent& event);
  [[nodiscard]] bool is_free(std::uint64_t address, std::uint64_t bytes) const;

  const RecordingReader& reader_;
  std::size_t max_entries_;
  std::map<std::uint64_t, std::uint64_t> mapped_;  ///< From, to; never adjacent.
  std::map<std::uint64_t, SnapshotBlock> blocks_;
  std::unordered_map<std::uint64_t, std::uint64_t> addresses_;  ///< Of allocations that have bytes.
  std::deque<SnapshotEntry> entries_;
  SnapshotSite site_;  ///< Of the last marks.
  std::int64_t time_us_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  bool overflowed_ = false;
};

}  // namespace headroom::bench
