#include "runtime/shard/manager_state.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace headroom::detail {

namespace {

constexpr std::size_t kSlotAlignmentBytes = 512;  // the allocator's granule
constexpr std::size_t kMostLifetimes = 1U << 16;  // a caller that never takes them must not grow for ever

PlannedSchedule plan(const ManagerState& state, const PathState& path, bool first_step) {
  PlanInput input;
  for (const auto& unit : state.units) {
    const auto full_bytes = static_cast<std::size_t>(unit->layout.padded_numel) * sizeof(float);
    const auto shard_bytes = static_cast<std::size_t>(unit->layout.shard_numel) * sizeof(float);
    input.units.push_back({unit->layout.unit, full_bytes, full_bytes, shard_bytes});
  }
  input.forward = path.forward;
  input.backward = path.backward;
  input.micro_batches = state.options.micro_batches;
  input.world = state.world;
  input.first_step = first_step;
  PlannedSchedule planned;
  planned.schedule = state.policy->plan(input);
  planned.schedule.validate();
  planned.slots = pack_slots(planned.schedule, kSlotAlignmentBytes);
  planned.slot_at.assign(planned.schedule.ops().size(), -1);
  for (std::size_t i = 0; i < planned.slots.slots.size(); ++i) {
    planned.slot_at[planned.slots.slots[i].first_op] = static_cast<int>(i);
  }
  return planned;
}

void allocate_gradient(ManagerState& state, int index) {
  UnitState& unit = state.unit(index);
  unit.gradient_shard = state.memory.allocate({.bytes = unit.gradient_shard_view().bytes(),
                                               .category = Category::gradient_shard,
                                               .name = unit.layout.unit,
                                               .unit = index,
                                               .region = Region::residents},
                                              state.compute);
  if (state.world == 1) {
    unit.full = unit.shard.view(0, unit.shard.bytes(), unit.layout.unit);
    unit.gradient = unit.gradient_shard.view(0, unit.gradient_shard.bytes(), unit.layout.unit);
  } else {
    unit.gradient_shard.record_use(state.reduce);
  }
}

}  // namespace

TensorView UnitState::shard_view() const { return {shard.data(), DType::f32, {layout.shard_numel, 1, 1, 1}}; }

TensorView UnitState::gradient_shard_view() const {
  return {gradient_shard.data(), DType::f32, {layout.shard_numel, 1, 1, 1}};
}

ManagerState::ManagerState(Communicators group, CachingAllocator& allocator, StreamRef compute_stream,
                           const ParameterOptions& with)
    : communicators(std::move(group)),
      memory(allocator),
      compute(compute_stream),
      gather_stream(compute_stream.device(), {StreamRole::gather, "gather"}),
      reduce_stream(compute_stream.device(), {StreamRole::reduce, "reduce"}),
      gather(gather_stream),
      reduce(reduce_stream),
      options(with),
      rank(communicators.control->rank()),
      world(communicators.control->size()) {}

TensorView ManagerState::scalars_view(std::int64_t first, std::int64_t count) const {
  return {scalars.data() + static_cast<std::size_t>(first) * sizeof(double), DType::f64, {count, 1, 1, 1}};
}

void ManagerState::record_lifetime(const SetLifetime& lifetime) {
  if (lifetimes.size() < kMostLifetimes) {
    lifetimes.push_back(lifetime);
  }
}

void plan_paths(ManagerState& state) {
  if (state.units.empty()) {
    throw InvalidInput("a model needs at least one unit: none was added");
  }
  if (state.options.micro_batches < 1) {
    throw InvalidInput(fmt::format("micro-batches: expected at least 1, found {}", state.options.micro_batches));
  }
  if (state.paths.empty()) {
    std::vector<int> order(state.units.size());
    std::iota(order.begin(), order.end(), 0);
    state.paths["default"] = {order, {order.rbegin(), order.rend()}, {}, {}};
  }
  for (auto& [name, path] : state.paths) {
    path.first = plan(state, path, true);
    path.steady = plan(state, path, false);
  }
}

void allocate_for_steps(ManagerState& state) {
  std::size_t slot_bytes = 0;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    if (!state.unit(i).gradient_shard) {
      allocate_gradient(state, i);
    }
    // Parameters are read between steps through the slots, so the largest unit must fit whatever the schedule does.
    const auto full_bytes = static_cast<std::size_t>(state.unit(i).layout.padded_numel) * sizeof(float);
    slot_bytes = std::max(slot_bytes, full_bytes);
  }
  for (const auto& [name, path] : state.paths) {
    slot_bytes = std::max({slot_bytes, path.first.slots.high_water_bytes, path.steady.slots.high_water_bytes});
  }
  if (!state.scalars) {
    state.scalars = state.memory.allocate(
        {.bytes = sizeof(kernels::StepScalars) + 2 * sizeof(double),  // and this rank's part of two sums
         .category = Category::other,
         .name = "step scalars",
         .region = Region::residents},
        state.compute);
    state.scalars.record_use(state.reduce);
    kernels::fill({state.scalars.data(), DType::f64, {4, 1, 1, 1}}, 0, state.compute);
    state.scalar_scratch =
        state.memory.allocate({.bytes = state.communicators.reduce->all_reduce_scratch_bytes(2 * sizeof(double)),
                               .category = Category::communication,
                               .name = "norm scratch",
                               .region = Region::residents},
                              state.reduce);
  }
  if (state.world > 1) {
    state.memory.commit_slots(slot_bytes);
  }
}

std::string describe(const ManagerState& state) {
  std::string text = fmt::format("world {}\nseed {}\nmicro-batches {}\npolicy {}\n", state.world, state.options.seed,
                                 state.options.micro_batches, state.policy->describe());
  for (const auto& unit : state.units) {
    for (const ParameterSpec& spec : unit->layout.parameters) {
      text += fmt::format("{}.{} [{}]\n", unit->layout.unit, spec.name, fmt::join(spec.shape, ", "));
    }
  }
  for (const auto& [name, path] : state.paths) {
    for (const PlannedSchedule* planned : {&path.first, &path.steady}) {
      text += fmt::format("path {} schedule {:016x}\n{}", name, planned->schedule.hash(), planned->schedule.text());
    }
  }
  return text;
}

}  // namespace headroom::detail
