#pragma once

#include <headroom/timeline.hpp>

namespace headroom {

/// A storage in one state, for [begin_ns, end_ns).
struct BufferSpan {
  std::uint64_t allocation = 0;
  std::size_t bytes = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t name = 0;
  int unit = -1;
  Tag tag = Tag::other;
  Region region = Region::transients;
  bool shared = false;  ///< A view of the whole of it was alive: what else the unit needs lies in it.
};

/// When the host asked: from alloc to free_requested, states as they were tagged. `live`: Timeline::live() before the
/// first of `events` (none: the log is whole), so that a long log can be shown a step at a time. What is not freed
/// lives on until the last event; what was live begins in the state that it had. In the order of allocation, each
/// storage's spans one after the other.
[[nodiscard]] std::vector<BufferSpan> issue_spans(std::span<const LiveBuffer> live,
                                                  std::span<const AllocatorEvent> events);

/// When the device did: a storage lives from the start of the first operation after its alloc's ticket to the end of
/// its last use, in states by what the streams did:
/// - a full set is `gathering` until the operations that fill it are over, then `next` until its visit's first
///   operation; `retained` from the end of its visit's last one. None is `releasing`: what no work uses is gone.
/// - a full gradient is `awaiting_reduce` from the end of its backward to the start of its reduction.
/// A storage that no operation uses does not appear. `operations`, in any order, reach from before the first event's
/// work to after the last's; what is in use beyond either end lives from the first, or until the last, of them.
[[nodiscard]] std::vector<BufferSpan> device_spans(std::span<const LiveBuffer> live,
                                                   std::span<const AllocatorEvent> events,
                                                   std::span<const OperationRecord> operations);

/// Memory from `time_ns` to the next instant. `tag_bytes` sums to `live_bytes`.
struct SpanInstant {
  std::int64_t time_ns = 0;
  std::size_t live_bytes = 0;
  TagBytes tag_bytes{};
};

/// One for each time at which anything changes, in order; the last one is empty memory. O(spans log spans).
[[nodiscard]] std::vector<SpanInstant> instants(std::span<const BufferSpan> spans);

/// Where a unit's full parameters lie beside its shard: nowhere seen, in storages of their own, or in the shard's.
enum class ShardStorage : std::uint8_t { none, separate, shared };

/// One gathered set of a unit.
struct SetUse {
  std::uint64_t allocation = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t gathering_ns = 0, idle_ns = 0, used_ns = 0;  ///< They sum to its life; idle: next and retained.
};

/// What was measured of one unit.
struct UnitLifetimes {
  int unit = -1;
  std::size_t shard_bytes = 0, full_bytes = 0;  ///< The largest; full 0 where none of its own was seen.
  ShardStorage storage = ShardStorage::none;
  std::int64_t longest_overlap_ns = 0;  ///< For which one full set stood beside the shard.
  double overlap_byte_seconds = 0;      ///< Of full sets beside the shard.
  std::vector<SetUse> sets;             ///< In the order of allocation.
};

/// Of each unit that has a shard or a full set among `spans`, in the order of units.
[[nodiscard]] std::vector<UnitLifetimes> unit_lifetimes(std::span<const BufferSpan> spans);

}  // namespace headroom
