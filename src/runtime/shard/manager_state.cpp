#include "runtime/shard/manager_state.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace headroom::detail {

namespace {

constexpr std::size_t kSlotAlignmentBytes = 512;  // the allocator's granule
constexpr std::size_t kMostLifetimes = 1U << 16;  // a caller that never takes them must not grow for ever

const char* name_of(ShardStrategy strategy) {
  switch (strategy) {
    case ShardStrategy::full_shard: return "full_shard";
    case ShardStrategy::shard_grad_op: return "shard_grad_op";
    case ShardStrategy::no_shard: return "no_shard";
    case ShardStrategy::hybrid: break;
  }
  return "hybrid";
}

void check_options(const ManagerState& state) {
  const auto is_float = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  if (!is_float(state.options.gathered) || !is_float(state.options.reduced)) {
    throw InvalidInput(fmt::format("gathered and reduced dtypes: expected f32 or bf16, found {} and {}",
                                   headroom::name_of(state.options.gathered),
                                   headroom::name_of(state.options.reduced)));
  }
  if (state.world == 1) {
    return;
  }
  const ShardStrategy strategy = state.options.strategy;
  const bool whole = strategy == ShardStrategy::full_shard || strategy == ShardStrategy::shard_grad_op;
  const bool fits = whole                                 ? state.shard_ranks == state.world
                    : strategy == ShardStrategy::no_shard ? state.shard_ranks == 1
                                                          : state.shard_ranks > 1;
  const bool copies = whole || state.communicators.replicate != nullptr;
  if (!fits || !copies) {
    throw InvalidInput(fmt::format(
        "strategy {}: expected communicators with shard groups of {}, found groups of {} in a world of {}. Make them "
        "with Job::communicators({{.shard_ranks = ...}})",
        name_of(strategy),
        whole                                 ? "all ranks"
        : strategy == ShardStrategy::no_shard ? "1 rank"
                                              : "2 ranks or more",
        state.shard_ranks, state.world));
  }
  if (strategy == ShardStrategy::no_shard && state.options.gathered != DType::f32) {
    throw InvalidInput("strategy no_shard gathers nothing: expected gathered parameters of f32, found bf16");
  }
}

PlannedSchedule plan(const ManagerState& state, const PathState& path, bool first_step) {
  PlanInput input;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    input.units.push_back({state.name(i), state.set_bytes(i), state.gradient_bytes(i)});
  }
  input.forward = path.forward;
  input.backward = path.backward;
  input.micro_batches = state.options.micro_batches;
  input.world = state.world;
  input.strategy = state.options.strategy;
  input.accumulation = state.options.accumulation;
  input.first_step = first_step;
  PlannedSchedule planned;
  planned.schedule = state.policy->plan(input);
  if (!(planned.schedule.input() == input)) {
    throw InvalidInput(
        fmt::format("policy '{}': expected a schedule of the PlanInput that it was given, found one of another. Return "
                    "{{ops, input}}",
                    state.policy->describe()));
  }
  planned.schedule.validate();
  planned.slots = pack_slots(planned.schedule, kSlotAlignmentBytes);
  planned.slot_at.assign(planned.schedule.ops().size(), -1);
  for (std::size_t i = 0; i < planned.slots.slots.size(); ++i) {
    planned.slot_at[planned.slots.slots[i].first_op] = static_cast<int>(i);
  }
  return planned;
}

Buffer resident(ManagerState& state, int index, Category category, std::size_t bytes) {
  return state.memory.allocate(
      {.bytes = bytes, .category = category, .name = state.name(index), .unit = index, .region = Region::residents},
      state.compute);
}

void allocate_unit(ManagerState& state, int index) {
  UnitState& unit = state.unit(index);
  unit.gradient_shard = resident(state, index, Category::gradient_shard,
                                 static_cast<std::size_t>(unit.layout.trainable.shard_numel) * sizeof(float));
  if (state.world > 1) {
    unit.gradient_shard.record_use(state.reduce);
  }
  if (!state.gathers()) {
    unit.full = unit.shard.view(0, unit.shard.bytes(), unit.layout.unit);
    unit.resident_gradient = unit.gradient_shard.view(0, unit.gradient_shard.bytes(), unit.layout.unit);
  } else if (state.options.verify) {
    unit.checksums = resident(state, index, Category::communication,
                              static_cast<std::size_t>(state.shard_ranks) * sizeof(std::int32_t));
    unit.checksums.record_use(state.gather);
  }
}

void allocate_scalars(ManagerState& state) {
  constexpr std::size_t kScalarBytes = sizeof(kernels::StepScalars) + 2 * sizeof(double);  // and two partial sums
  state.scalars = state.memory.allocate(
      {.bytes = kScalarBytes, .category = Category::other, .name = "step scalars", .region = Region::residents},
      state.compute);
  state.scalars.record_use(state.reduce);
  kernels::fill({state.scalars.data(), DType::f64, {4, 1, 1, 1}}, 0, state.compute);
  std::size_t scratch_bytes = state.communicators.reduce->all_reduce_scratch_bytes(2 * sizeof(double));
  for (int i = 0; state.communicators.replicate != nullptr && i < static_cast<int>(state.units.size()); ++i) {
    const std::size_t bytes = std::max(state.unit(i).gradient_shard.bytes(), 2 * sizeof(double));
    scratch_bytes = std::max(scratch_bytes, state.communicators.replicate->all_reduce_scratch_bytes(bytes));
  }
  state.scratch = state.memory.allocate({.bytes = scratch_bytes,
                                         .category = Category::communication,
                                         .name = "all-reduce scratch",
                                         .region = Region::residents},
                                        state.reduce);
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + kSlotAlignmentBytes - 1) / kSlotAlignmentBytes * kSlotAlignmentBytes;
}

}  // namespace

TensorView UnitState::shard_view() const { return {shard.data(), DType::f32, {layout.shard_numel, 1, 1, 1}}; }

TensorView UnitState::gradient_shard_view() const {
  return {gradient_shard.data(), DType::f32, {layout.trainable.shard_numel, 1, 1, 1}};
}

ManagerState::ManagerState(Communicators group, CachingAllocator& allocator, StreamRef compute_stream,
                           const ParameterOptions& with)
    : communicators(std::move(group)),
      memory(allocator),
      compute(compute_stream),
      gather_stream(compute_stream.device(), {StreamRole::gather, "gather"}),
      reduce_stream(compute_stream.device(), {StreamRole::reduce, "reduce"}),
      gather(gather_stream),
      reduce(communicators.reduce == communicators.gather ? gather_stream : reduce_stream),
      options(with),
      rank(communicators.control->rank()),
      world(communicators.control->size()),
      shard_rank(communicators.gather->rank()),
      shard_ranks(communicators.gather->size()),
      gathered(shard_ranks > 1 ? with.gathered : DType::f32) {
  check_options(*this);
}

TensorView ManagerState::scalars_view(std::int64_t first, std::int64_t count) const {
  return {scalars.data() + static_cast<std::size_t>(first) * sizeof(double), DType::f64, {count, 1, 1, 1}};
}

TensorView ManagerState::scratch_view() const {
  return {scratch.data(), DType::u8, {static_cast<std::int64_t>(scratch.bytes()), 1, 1, 1}};
}

std::size_t ManagerState::set_bytes(int index) const {
  return static_cast<std::size_t>(unit(index).layout.padded_numel) * size_of(gathered);
}

std::size_t ManagerState::gradient_bytes(int index) const {
  return static_cast<std::size_t>(unit(index).layout.trainable.padded_numel) * sizeof(float);
}

void ManagerState::record_lifetime(const SetLifetime& lifetime) {
  if (lifetimes.size() < kMostLifetimes) {
    lifetimes.push_back(lifetime);
  }
}

void plan_path(const ManagerState& state, PathState& path) {
  path.first = plan(state, path, true);
  path.steady = plan(state, path, false);
}

void forget_plans(ManagerState& state) {
  for (auto& [name, path] : state.paths) {
    path.first = {};
    path.steady = {};
  }
  state.stale = true;
}

void plan_paths(ManagerState& state) {
  if (state.units.empty()) {
    throw InvalidInput("a model needs at least one unit: none was added");
  }
  if (state.options.micro_batches < 1) {
    throw InvalidInput(fmt::format("micro-batches: expected at least 1, found {}", state.options.micro_batches));
  }
  if (state.paths.empty()) {
    state.paths[kDefaultPath];
  }
  if (const auto found = state.paths.find(kDefaultPath); found != state.paths.end() && found->second.declared) {
    std::vector<int>& forward = found->second.forward;
    if (forward.empty()) {
      forward.resize(state.units.size());
      std::iota(forward.begin(), forward.end(), 0);
      found->second.backward.assign(forward.rbegin(), forward.rend());
    }
  }
  for (auto& [name, path] : state.paths) {
    if (path.known() && path.steady.schedule.ops().empty()) {
      plan_path(state, path);
    }
  }
}

void allocate_for_steps(ManagerState& state) {
  state.reserve_set_bytes = 0;
  std::size_t gradient_bytes = 0;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    if (!state.unit(i).gradient_shard) {
      allocate_unit(state, i);
    }
    // Parameters are read between steps, as f32, through the slots: the largest unit must fit whatever the plan is.
    const auto read_bytes = static_cast<std::size_t>(state.unit(i).layout.padded_numel) * sizeof(float);
    state.reserve_set_bytes = std::max(state.reserve_set_bytes, round_up(state.gathers() ? read_bytes : 0));
    gradient_bytes = std::max(gradient_bytes, round_up(state.gradient_bytes(i)));
  }
  if (!state.scalars) {
    allocate_scalars(state);
  }
  if (state.world == 1) {
    return;
  }
  std::size_t slot_bytes = state.reserve_set_bytes;
  if (state.observes() || state.reserves) {
    slot_bytes += gradient_bytes;
  }
  for (const auto& [name, path] : state.paths) {
    if (path.known() && !state.observes()) {
      slot_bytes = std::max({slot_bytes, path.first.slots.high_water_bytes, path.steady.slots.high_water_bytes});
    }
  }
  state.memory.commit_slots(slot_bytes);
}

std::string describe(const ManagerState& state) {
  const ParameterOptions& options = state.options;
  std::string text = fmt::format(
      "world {}\nshard group {}\nstrategy {}\nseed {}\nmicro-batches {}\naccumulation {}\ngathered {}\nreduced {}\n"
      "buffers {}\nverify {}\npolicy {}\n",
      state.world, state.shard_ranks, name_of(options.strategy), options.seed, options.micro_batches,
      options.accumulation == Accumulation::full ? "full" : "sharded", headroom::name_of(options.gathered),
      headroom::name_of(options.reduced), state.observes() ? "observed" : "planned", options.verify,
      state.policy->describe());
  for (const auto& unit : state.units) {
    for (const ParameterSpec& spec : unit->layout.parameters) {
      text += fmt::format("{}.{} [{}]{}\n", unit->layout.unit, spec.name, fmt::join(spec.shape, ", "),
                          spec.frozen ? " frozen" : "");
    }
  }
  for (const auto& [name, path] : state.paths) {
    if (!path.known()) {
      continue;
    }
    for (const PlannedSchedule* planned : {&path.first, &path.steady}) {
      text += fmt::format("path {} schedule {:016x}\n{}", name, planned->schedule.hash(), planned->schedule.text());
    }
  }
  return text;
}

}  // namespace headroom::detail
