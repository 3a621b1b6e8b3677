#pragma once

#include <headroom/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

/// What a block of memory is for. Every allocation names one; there is no default.
enum class Category : std::uint8_t {
  parameter_shard,
  parameter_full,
  gradient_full,
  gradient_shard,
  optimizer_state,
  activation,
  workspace,
  communication,
  input,
  other,
};

/// Where a full parameter set or a full gradient is in its life, in issue order. `gathering`: its visit waits for it;
/// `next`: gathered ahead of its visit; `current`: its visit computes; `retained`: kept for a later visit.
enum class UseState : std::uint8_t { none, gathering, next, current, retained, computing, awaiting_reduce, reducing };

enum class Region : std::uint8_t { residents, communication, transients };
inline constexpr int kRegionCount = 3;

/// Category and UseState folded into one index: the rows of a timeline. "parameter_full.next", "activation", ...
enum class Tag : std::uint8_t {
  parameter_shard,
  parameter_full_gathering,
  parameter_full_next,
  parameter_full_current,
  parameter_full_retained,
  parameter_full_releasing,  ///< Released, last use not complete: pending bytes, not allocated ones.
  gradient_full_computing,
  gradient_full_awaiting_reduce,
  gradient_full_reducing,
  gradient_full_retained,
  gradient_shard,
  optimizer_state,
  activation,
  workspace,
  communication,
  input,
  other,
};
inline constexpr int kTagCount = 17;

/// The row's name in reports. Static lifetime.
[[nodiscard]] const char* name_of(Tag tag) noexcept;
[[nodiscard]] const char* name_of(Category category) noexcept;
/// Throws: std::logic_error where the state does not belong to the category.
[[nodiscard]] Tag tag_of(Category category, UseState state);

using TagBytes = std::array<std::size_t, kTagCount>;

/// How an allocation was served, in the order in which the ladder tries it: a block whose users are already ordered
/// before the stream; new pages; a block after a wait of the stream; the same after a callback gave something back;
/// after pages went back to the device; after a wait of the calling thread. A slot is always `ready`.
enum class Rung : std::uint8_t { ready, grown, waited, callback, returned, host_waited };
inline constexpr int kRungCount = 6;

/// One fact about an allocator, in the order it became true: the one record behind statistics, timeline, replay and
/// exporters. Plain data; written to disk as it is.
struct AllocatorEvent {
  enum class Kind : std::uint8_t {
    segment_map,
    segment_unmap,
    alloc,
    free_requested,
    free_completed,
    view,
    view_drop,
    retag,
    out_of_memory,
    step,
    unit,
    use,    ///< Before a free_requested: the allocation's last use on a stream other than its own.
    wait,   ///< `stream`, from `ticket` on, comes after ticket `bytes` of stream `address`. Its own stream: some are
            ///< lost.
    trim,   ///< Free pages were asked back.
    slots,  ///< The planned part of the communication region was given `bytes`.
    peak_reset,  ///< peak <- current.
    host_wait,   ///< Within a call: the calling thread waits for frees, and lets other calls in meanwhile.
    callback,    ///< The same, to ask a pressure callback.
  };
  // Of `flags`:
  static constexpr std::uint8_t kSlot = 1;       ///< A planned offset, or the refusal to back such offsets.
  static constexpr std::uint8_t kRungShift = 1;  ///< An alloc's Rung, 3 bits.
  static constexpr std::uint8_t kInside = 16;    ///< While another call waited: see host_wait, callback.
  static constexpr std::uint8_t kOwnWait = 32;   ///< Of a wait: made by the allocator, for the next alloc.
  static constexpr std::uint8_t kPending = 64;   ///< Of a free_requested: there is something left to wait for.

  std::uint64_t number = 0;      ///< Dense, from 0.
  std::int64_t time_ns = 0;      ///< Device::now_ns, issue order on the host.
  std::uint64_t allocation = 0;  ///< Never reused; of a view: its base's. Of a step mark: the step.
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< As allocated (rounded). Of segment events: mapped. Of a view: its length.
  std::uint64_t requested_bytes = 0;
  /// Where on `stream` it takes effect. alloc, retag: work after this ticket; 0 of a retag: unknown. use,
  /// free_requested: the last use, this ticket included.
  Ticket ticket = 0;
  std::uint32_t name = 0;  ///< Index into the log's names.
  std::int32_t unit = -1;
  StreamId stream = 0;
  Kind kind = Kind::alloc;
  Tag tag = Tag::other;
  Region region = Region::transients;
  std::uint8_t flags = 0;

  [[nodiscard]] bool is_slot() const noexcept { return (flags & kSlot) != 0; }
  [[nodiscard]] Rung rung() const noexcept { return static_cast<Rung>((flags >> kRungShift) & 7U); }
};
static_assert(sizeof(AllocatorEvent) == 72);

}  // namespace headroom
