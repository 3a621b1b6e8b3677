#include "runtime/shard/manager_state.hpp"
#include "runtime/shard/step_operations.hpp"

#include <algorithm>
#include <limits>

/// A unit's gradients, from where compute leaves them to the shards of their owners; and the norm of all of them.
namespace headroom::detail {

namespace {

TensorView view_of(const Buffer& buffer, DType dtype, std::int64_t first, std::int64_t numel) {
  return {buffer.data() + static_cast<std::size_t>(first) * size_of(dtype), dtype, {numel, 1, 1, 1}};
}

const Buffer& gradient_of(const UnitState& unit) { return unit.gradient ? unit.gradient : unit.resident_gradient; }

/// The full gradient in the dtype that travels; cast in its own place.
TensorView on_the_wire(ManagerState& state, int index) {
  const UnitState& unit = state.unit(index);
  const std::int64_t numel = unit.layout.trainable.padded_numel;
  const TensorView computed = view_of(gradient_of(unit), DType::f32, 0, numel);
  if (state.options.reduced == DType::f32) {
    return computed;
  }
  const TensorView narrowed = view_of(gradient_of(unit), state.options.reduced, 0, numel);
  kernels::cast(computed, narrowed, {state.reduce, index});
  return narrowed;
}

/// What of the gradient came back summed goes into the gradient shard, or is added to what it holds of this step.
void add_to_shard(ManagerState& state, int index, TensorView summed) {
  UnitState& unit = state.unit(index);
  if (unit.gradient_written) {
    kernels::accumulate(summed, unit.gradient_shard_view(), {state.reduce, index});
  } else {
    kernels::cast(summed, unit.gradient_shard_view(), {state.reduce, index});
  }
  unit.gradient_written = true;
}

/// The gradient's buffer is free once its reduction is over: with observed buffers for whoever is ordered after that.
void hand_over(StepState& step, std::size_t at, Ticket computed) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.ops()[at];
  UnitState& unit = state.unit(op.unit);
  const bool counts = static_cast<bool>(unit.gradient) && unit.gradient_counts;
  const Ticket reduced = state.reduce.issued();
  step.reducing.push_back(
      {op.unit, op.micro, counts, std::move(unit.gradient), unit.gradient_begun, computed, reduced});
  StepState::Reducing& reducing = step.reducing.back();
  if (reducing.gradient && state.observes() && step.plan != nullptr) {
    reducing.gradient.last_use(state.compute, computed);
    reducing.gradient.last_use(state.reduce, reduced);
    reducing.gradient.reset();
  }
}

Ticket begin_reduction(ManagerState& state, int index) {
  const UnitState& unit = state.unit(index);
  const Ticket computed = state.compute.issued();
  state.reduce.wait(state.compute, computed);
  if (unit.gradient) {
    state.unit(index).gradient.retag(Category::gradient_full, UseState::reducing, state.reduce);
  }
  return computed;
}

}  // namespace

void begin_gradient(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const int index = step.ops()[at].unit;
  UnitState& unit = state.unit(index);
  if (!unit.trains()) {
    return;
  }
  if (begins_gradient(step, at)) {
    unit.gradient = take_gradient(step, at);
    if (!step.drain_gradient) {
      kernels::fill(view_of(unit.gradient, DType::f32, 0, unit.layout.trainable.padded_numel), 0,
                    {state.compute, index});
    }
    unit.gradient_begun = state.compute.issued();
    unit.gradient_counts = !step.drain_gradient;
    if (unit.gradient_counts) {
      state.gradient_sets_peak = std::max(state.gradient_sets_peak, ++state.gradient_sets);
    }
  } else if (unit.gradient) {
    unit.gradient.retag(Category::gradient_full, UseState::computing, state.compute);
  } else if (!unit.gradient_written) {  // it lies in the gradient shard itself
    kernels::fill(unit.gradient_shard_view(), 0, {state.compute, index});
    unit.gradient_written = true;
  }
}

void reduce_scatter(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const int index = step.ops()[at].unit;
  UnitState& unit = state.unit(index);
  state.memory.mark_unit(index, "backward", "reduce_scatter");
  const Ticket computed = begin_reduction(state, index);
  const TensorView full = on_the_wire(state, index);
  if (full.dtype == DType::f32 && !unit.gradient_written) {
    state.communicators.reduce->reduce_scatter(full, unit.gradient_shard_view(), state.reduce, index);
    unit.gradient_written = true;
  } else {
    const std::int64_t numel = unit.layout.trainable.shard_numel;
    const TensorView own = view_of(unit.gradient, full.dtype, state.shard_rank * numel, numel);
    state.communicators.reduce->reduce_scatter(full, own, state.reduce, index);
    add_to_shard(state, index, own);
  }
  hand_over(step, at, computed);
}

void all_reduce(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const int index = step.ops()[at].unit;
  UnitState& unit = state.unit(index);
  state.memory.mark_unit(index, "backward", "all_reduce");
  Communicator& replicate = *state.communicators.replicate;
  if (state.gathers()) {  // hybrid: the shard, across groups, right behind its reduce-scatter
    replicate.all_reduce(unit.gradient_shard_view(), state.scratch_view(), state.reduce, index);
    if (step.reducing.empty()) {
      step.reducing.push_back({.unit = index, .micro = step.ops()[at].micro});
    }
    step.reducing.back().reduced = state.reduce.issued();
    return;
  }
  const Ticket computed = begin_reduction(state, index);
  const TensorView full = on_the_wire(state, index);
  replicate.all_reduce(full, state.scratch_view(), state.reduce, index);
  if (unit.gradient) {
    add_to_shard(state, index, full);
  } else if (full.dtype != DType::f32) {  // back to f32, in place
    kernels::cast(full, unit.gradient_shard_view(), {state.reduce, index});
  }
  hand_over(step, at, computed);
}

void wait_reduce(StepState& step, const ScheduleOp* until) {
  ManagerState& state = *step.manager;
  const auto is_last = [until](const StepState::Reducing& reducing) {
    return until != nullptr && reducing.unit == until->unit && reducing.micro == until->micro;
  };
  auto end = std::find_if(step.reducing.begin(), step.reducing.end(), is_last);
  end += end != step.reducing.end() ? 1 : 0;
  Ticket newest = 0;
  for (auto reducing = step.reducing.begin(); reducing != end; ++reducing) {
    newest = std::max(newest, reducing->reduced);
  }
  if (newest > state.compute.knows(state.reduce)) {
    state.compute.wait(state.reduce, newest);
  }
  for (auto reducing = step.reducing.begin(); reducing != end; ++reducing) {
    if (reducing->gradient) {
      reducing->gradient.last_use(state.compute, reducing->computed);
      reducing->gradient.last_use(state.reduce, reducing->reduced);
      reducing->gradient.reset();
    }
    if (reducing->counts) {
      --state.gradient_sets;
      state.record_lifetime(
          {true, reducing->unit, state.compute.id(), state.reduce.id(), reducing->begun, reducing->reduced});
    }
  }
  step.reducing.erase(step.reducing.begin(), end);
}

namespace {

/// Sums the first two scalars: the norm over the shard group, whose gradients are the model's; the loss over all ranks.
/// They are not a number until the sums have arrived, on the reduce stream: where a collective of this step fails, that
/// stream skips the rest, and the update refuses a norm that is not finite. So a step whose communication broke after
/// the vote changes no parameter.
void all_reduce_scalars(ManagerState& state) {
  const TensorView result = state.scalars_view(0, 2);
  const TensorView partial = state.scalars_view(4, 2);
  kernels::copy(result, partial, state.compute);
  kernels::fill(result, std::numeric_limits<double>::quiet_NaN(), state.compute);
  state.reduce.wait(state.compute, state.compute.issued());
  if (state.gathers()) {
    state.communicators.reduce->all_reduce(partial, state.scratch_view(), state.reduce);
  }
  if (state.shard_ranks < state.world) {
    state.communicators.replicate->all_reduce(state.scalars_view(5, 1), state.scratch_view(), state.reduce);
  }
  kernels::copy(partial, result, state.reduce);
  state.compute.wait(state.reduce, state.reduce.issued());
}

}  // namespace

void norm(StepState& step) {
  ManagerState& state = *step.manager;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    UnitState& unit = state.unit(i);
    if (!unit.gradient_written) {  // the path does not visit this unit
      kernels::fill(unit.gradient_shard_view(), 0, {state.compute, i});
    }
    kernels::sum_squares(unit.gradient_shard_view(), state.scalars_view(0, 1), {state.compute, i});
  }
  if (state.world > 1) {
    all_reduce_scalars(state);
  }
}

}  // namespace headroom::detail
