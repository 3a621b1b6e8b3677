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
  };
  std::uint64_t number = 0;      ///< Dense, from 0.
  std::int64_t time_ns = 0;      ///< Device::now_ns, issue order on the host.
  std::uint64_t allocation = 0;  ///< Never reused; of a view: its base's. Of a step mark: the step.
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< As allocated (rounded). Of segment events: mapped. Of a view: its length.
  std::uint64_t requested_bytes = 0;
  std::uint32_t name = 0;  ///< Index into the log's names.
  std::int32_t unit = -1;
  StreamId stream = 0;
  Kind kind = Kind::alloc;
  Tag tag = Tag::other;
  Region region = Region::transients;
  std::uint8_t reserved = 0;
};
static_assert(sizeof(AllocatorEvent) == 64);

}  // namespace headroom
