#include <headroom/crc32c.hpp>

#include "runtime/shard/manager_state.hpp"
#include "runtime/shard/step_operations.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstring>
#include <span>

/// A unit's parameters, from the shards of its owners to where compute reads them.
namespace headroom::detail {

namespace {

/// Elements [first, first + numel) of a flat buffer.
TensorView part(std::byte* flat, DType dtype, std::int64_t first, std::int64_t numel) {
  return {flat + static_cast<std::size_t>(first) * size_of(dtype), dtype, {numel, 1, 1, 1}};
}

/// A value, so that an operation under way needs nothing of its manager.
using Groups = std::array<FlatLayout::Group, 2>;

/// One checksum over both groups of one owner.
std::uint32_t checksum_of(const std::array<TensorView, 2>& slices) {
  std::uint32_t checksum = 0;
  for (const TensorView& slice : slices) {
    checksum = crc32c({slice.as<const std::byte>(), slice.bytes()}, checksum);
  }
  return checksum;
}

TensorView slice_of(std::byte* full, DType dtype, const FlatLayout::Group& group, int owner) {
  return part(full, dtype, group.begin + owner * group.shard_numel, group.shard_numel);
}

/// Each owner's checksum of what it sends, taken before it is sent, and gathered beside it.
void gather_checksums(ManagerState& state, int index, const std::array<TensorView, 2>& own) {
  const UnitState& unit = state.unit(index);
  state.gather.wait(state.compute, unit.verified);
  auto* const sums = reinterpret_cast<std::int32_t*>(unit.checksums.data());
  Operation operation;
  operation.name = "checksum";
  operation.unit = index;
  operation.host = [own, to = sums + state.shard_rank] {
    const std::uint32_t checksum = checksum_of(own);
    std::memcpy(to, &checksum, sizeof(checksum));
  };
  state.gather.enqueue(std::move(operation));
  const TensorView all{sums, DType::i32, {state.shard_ranks, 1, 1, 1}};
  const TensorView mine{sums + state.shard_rank, DType::i32, {1, 1, 1, 1}};
  state.communicators.gather->all_gather(mine, all, state.gather, index);
}

}  // namespace

void gather_unit(ManagerState& state, int index, const Buffer& full, DType dtype, bool checksums) {
  const UnitState& unit = state.unit(index);
  const Groups groups{unit.layout.trainable, unit.layout.frozen};
  std::array<TensorView, 2> own{};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    own[i] = part(unit.shard.data(), DType::f32, groups[i].shard_begin, groups[i].shard_numel);
    if (dtype != DType::f32) {  // cast in its place in the set, so that no other buffer is needed
      const TensorView slice = slice_of(full.data(), dtype, groups[i], state.shard_rank);
      kernels::cast(own[i], slice, {state.gather, index});
      own[i] = slice;
    }
  }
  if (checksums) {
    gather_checksums(state, index, own);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].padded_numel > 0) {
      const TensorView whole = part(full.data(), dtype, groups[i].begin, groups[i].padded_numel);
      state.communicators.gather->all_gather(own[i], whole, state.gather, index);
    }
  }
}

void all_gather(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const auto& ops = step.ops();
  const ScheduleOp& op = ops[at];
  UnitState& unit = state.unit(op.unit);
  state.memory.mark_unit(op.unit, phase_name(op.phase), "all_gather");
  const bool on_demand =
      at + 1 < ops.size() && ops[at + 1].kind == ScheduleOpKind::wait_gather && ops[at + 1].unit == op.unit;
  unit.full = take_set(step, at, on_demand ? UseState::gathering : UseState::next);
  gather_unit(state, op.unit, unit.full, state.gathered, state.options.verify);
  unit.gathered = state.gather.issued();
  unit.full_counts = !step.drain_set;
  if (unit.full_counts) {
    state.parameter_sets_peak = std::max(state.parameter_sets_peak, ++state.parameter_sets);
  }
}

void verify_set(ManagerState& state, int index) {
  UnitState& unit = state.unit(index);
  Operation operation;
  operation.name = "verify";
  operation.unit = index;
  operation.host = [name = unit.layout.unit, groups = Groups{unit.layout.trainable, unit.layout.frozen},
                    sums = unit.checksums.data(), full = unit.full.data(), dtype = state.gathered,
                    ranks = state.shard_ranks, compared = state.checksums_compared] {
    for (int owner = 0; owner < ranks; ++owner) {
      std::uint32_t expected = 0;
      std::memcpy(&expected, sums + static_cast<std::size_t>(owner) * sizeof(expected), sizeof(expected));
      const std::uint32_t found =
          checksum_of({slice_of(full, dtype, groups[0], owner), slice_of(full, dtype, groups[1], owner)});
      if (found != expected) {
        throw CommunicatorError(
            fmt::format("unit '{}': the gathered slice of shard rank {} has checksum {:08x}, its owner's has {:08x}",
                        name, owner, found, expected));
      }
      ++*compared;
    }
  };
  unit.verified = state.compute.enqueue(std::move(operation));
}

}  // namespace headroom::detail
