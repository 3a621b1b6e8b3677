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

using Groups = std::array<const FlatLayout::Group*, 2>;

Groups groups_of(const UnitState& unit) { return {&unit.layout.trainable, &unit.layout.frozen}; }

/// Elements [first, first + numel) of a flat buffer.
TensorView part(std::byte* flat, DType dtype, std::int64_t first, std::int64_t numel) {
  return {flat + static_cast<std::size_t>(first) * size_of(dtype), dtype, {numel, 1, 1, 1}};
}

/// One checksum of the slices of one owner, over both groups.
std::uint32_t slices_checksum(const UnitState& unit, std::byte* full, DType dtype, int owner) {
  std::uint32_t checksum = 0;
  for (const FlatLayout::Group* group : groups_of(unit)) {
    const TensorView slice = part(full, dtype, group->begin + owner * group->shard_numel, group->shard_numel);
    checksum = crc32c({slice.as<const std::byte>(), slice.bytes()}, checksum);
  }
  return checksum;
}

/// Each owner's checksum of what it sends, gathered beside the set.
void gather_checksums(ManagerState& state, int index) {
  UnitState& unit = state.unit(index);
  state.gather.wait(state.compute, unit.verified);
  auto* const sums = reinterpret_cast<std::int32_t*>(unit.checksums.data());
  Operation operation;
  operation.name = "checksum";
  operation.unit = index;
  operation.host = [&unit, sums, full = unit.full.data(), dtype = state.gathered, rank = state.shard_rank] {
    const std::uint32_t checksum = slices_checksum(unit, full, dtype, rank);
    std::memcpy(sums + rank, &checksum, sizeof(checksum));
  };
  state.gather.enqueue(std::move(operation));
  const TensorView all{sums, DType::i32, {state.shard_ranks, 1, 1, 1}};
  const TensorView own{sums + state.shard_rank, DType::i32, {1, 1, 1, 1}};
  state.communicators.gather->all_gather(own, all, state.gather, index);
}

}  // namespace

void gather_unit(ManagerState& state, int index, const Buffer& full, DType dtype) {
  const UnitState& unit = state.unit(index);
  for (const FlatLayout::Group* group : groups_of(unit)) {
    if (group->padded_numel == 0) {
      continue;
    }
    const TensorView whole = part(full.data(), dtype, group->begin, group->padded_numel);
    TensorView own = part(unit.shard.data(), DType::f32, group->shard_begin, group->shard_numel);
    if (dtype != DType::f32) {  // cast in its place in the set, so that no other buffer is needed
      const TensorView slice =
          part(full.data(), dtype, group->begin + state.shard_rank * group->shard_numel, group->shard_numel);
      kernels::cast(own, slice, {state.gather, index});
      own = slice;
    }
    state.communicators.gather->all_gather(own, whole, state.gather, index);
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
  gather_unit(state, op.unit, unit.full, state.gathered);
  if (state.options.verify) {
    gather_checksums(state, op.unit);
  }
  unit.gathered = state.gather.issued();
  state.parameter_sets_peak = std::max(state.parameter_sets_peak, ++state.parameter_sets);
}

void verify_set(ManagerState& state, int index) {
  UnitState& unit = state.unit(index);
  Operation operation;
  operation.name = "verify";
  operation.unit = index;
  operation.host = [&unit, sums = unit.checksums.data(), full = unit.full.data(), dtype = state.gathered,
                    ranks = state.shard_ranks, compared = state.checksums_compared] {
    for (int owner = 0; owner < ranks; ++owner) {
      std::uint32_t expected = 0;
      std::memcpy(&expected, sums + static_cast<std::size_t>(owner) * sizeof(expected), sizeof(expected));
      const std::uint32_t found = slices_checksum(unit, full, dtype, owner);
      if (found != expected) {
        throw CommunicatorError(
            fmt::format("unit '{}': the gathered slice of shard rank {} has checksum {:08x}, its owner's has {:08x}",
                        unit.layout.unit, owner, found, expected));
      }
      ++*compared;
    }
  };
  unit.verified = state.compute.enqueue(std::move(operation));
}

}  // namespace headroom::detail
