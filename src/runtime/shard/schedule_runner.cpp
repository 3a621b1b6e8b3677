#include "runtime/shard/schedule_runner.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

namespace headroom::detail {

namespace {

TensorView full_view(const UnitState& unit, const Buffer& buffer) {
  return {buffer.data(), DType::f32, {unit.layout.padded_numel, 1, 1, 1}};
}

const char* phase_name(Phase phase) { return phase == Phase::forward ? "forward" : "backward"; }

const SlotPlan::Slot& slot_of(const StepState& step, std::size_t at) {
  const int slot = step.plan->slot_at[at];
  if (slot < 0) {
    throw std::logic_error(fmt::format("schedule line {} ({}) begins a buffer, but the slot plan has none for it", at,
                                       to_text(step.plan->schedule.ops()[at], step.plan->schedule.input())));
  }
  return step.plan->slots.slots[static_cast<std::size_t>(slot)];
}

Buffer take_slot(StepState& step, std::size_t at, Category category, UseState use, StreamRef stream) {
  const SlotPlan::Slot& slot = slot_of(step, at);
  ManagerState& state = *step.manager;
  return state.memory.allocate_slot(slot.offset_bytes,
                                    {.bytes = slot.bytes,
                                     .category = category,
                                     .name = state.name(slot.unit),
                                     .unit = slot.unit,
                                     .state = use,
                                     .region = Region::communication},
                                    stream);
}

void all_gather(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const auto& ops = step.plan->schedule.ops();
  const ScheduleOp& op = ops[at];
  UnitState& unit = state.unit(op.unit);
  state.memory.mark_unit(op.unit, phase_name(op.phase), "all_gather");
  // The order of the text is what bounds live memory: a gather starts after every release before it.
  if (state.gather.knows(state.compute) < state.gather_after) {
    state.gather.wait(state.compute, state.gather_after);
  }
  const bool on_demand =
      at + 1 < ops.size() && ops[at + 1].kind == ScheduleOpKind::wait_gather && ops[at + 1].unit == op.unit;
  unit.full =
      take_slot(step, at, Category::parameter_full, on_demand ? UseState::gathering : UseState::next, state.gather);
  state.communicators.gather->all_gather(unit.shard_view(), full_view(unit, unit.full), state.gather, op.unit);
  unit.gathered = state.gather.issued();
  state.parameter_sets_peak = std::max(state.parameter_sets_peak, ++state.parameter_sets);
}

void release(StepState& step, int index) {
  ManagerState& state = *step.manager;
  UnitState& unit = state.unit(index);
  state.gather_after = state.compute.issued();
  unit.full.last_use(state.gather, unit.gathered);
  unit.full.last_use(state.compute, state.gather_after);
  unit.full.reset();
  --state.parameter_sets;
  state.record_lifetime({false, index, state.gather.id(), state.compute.id(), unit.gathered, state.gather_after});
}

void begin_gradient(StepState& step, std::size_t at, int index) {
  ManagerState& state = *step.manager;
  UnitState& unit = state.unit(index);
  if (state.world == 1) {
    if (!unit.gradient_written) {
      kernels::fill(unit.gradient_shard_view(), 0, {state.compute, index});
      unit.gradient_written = true;
    }
    return;
  }
  if (step.plan->slot_at[at] >= 0) {
    unit.gradient_last_op = slot_of(step, at).last_op;
    unit.gradient = take_slot(step, at, Category::gradient_full, UseState::computing, state.compute);
    kernels::fill(full_view(unit, unit.gradient), 0, {state.compute, index});
    unit.gradient_begun = state.compute.issued();
    state.gradient_sets_peak = std::max(state.gradient_sets_peak, ++state.gradient_sets);
  } else {
    unit.gradient.retag(Category::gradient_full, UseState::computing);
  }
}

void visit(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.plan->schedule.ops()[at];
  const bool backward = op.kind == ScheduleOpKind::backward;
  const char* phase = backward ? "backward" : "forward";
  state.memory.mark_unit(op.unit, phase, phase);
  if (state.world > 1) {
    state.unit(op.unit).full.retag(Category::parameter_full, UseState::current);
  }
  if (backward) {
    begin_gradient(step, at, op.unit);
  }
}

void reduce_scatter(StepState& step, std::size_t at, int index) {
  ManagerState& state = *step.manager;
  UnitState& unit = state.unit(index);
  state.memory.mark_unit(index, "backward", "reduce_scatter");
  const Ticket computed = state.compute.issued();
  state.reduce.wait(state.compute, computed);
  unit.gradient.retag(Category::gradient_full, UseState::reducing);
  const TensorView full = full_view(unit, unit.gradient);
  if (!unit.gradient_written) {
    state.communicators.reduce->reduce_scatter(full, unit.gradient_shard_view(), state.reduce, index);
    unit.gradient_written = true;
  } else {
    Buffer part = take_slot(step, at, Category::communication, UseState::none, state.reduce);
    const TensorView reduced{part.data(), DType::f32, {unit.layout.shard_numel, 1, 1, 1}};
    state.communicators.reduce->reduce_scatter(full, reduced, state.reduce, index);
    kernels::accumulate(reduced, unit.gradient_shard_view(), {state.reduce, index});
    part.last_use(state.reduce, state.reduce.issued());
  }
  step.reducing.push_back(
      {index, std::move(unit.gradient), unit.gradient_last_op, unit.gradient_begun, computed, state.reduce.issued()});
}

/// Orders compute after every reduction whose gradient ends at or before operation `at`, and frees those gradients.
void wait_reduce(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const auto over = [at](const StepState::Reducing& reducing) { return reducing.last_op <= at; };
  Ticket newest = 0;
  for (const auto& reducing : step.reducing) {
    newest = over(reducing) ? std::max(newest, reducing.reduced) : newest;
  }
  if (newest > state.compute.knows(state.reduce)) {
    state.compute.wait(state.reduce, newest);
  }
  for (auto& reducing : step.reducing) {
    if (over(reducing)) {
      reducing.gradient.last_use(state.compute, reducing.computed);
      reducing.gradient.last_use(state.reduce, reducing.reduced);
      reducing.gradient.reset();
      --state.gradient_sets;
      state.record_lifetime(
          {true, reducing.unit, state.compute.id(), state.reduce.id(), reducing.begun, reducing.reduced});
    }
  }
  std::erase_if(step.reducing, over);
}

/// Sums the first two scalars over the ranks. They are not a number until the sum has arrived, on the reduce stream:
/// where a collective of this step fails, that stream skips the rest, and the update refuses a norm that is not finite.
/// So a step whose communication broke after the vote changes no parameter.
void all_reduce_scalars(ManagerState& state) {
  const TensorView result = state.scalars_view(0, 2);
  const TensorView partial = state.scalars_view(4, 2);
  kernels::copy(result, partial, state.compute);
  kernels::fill(result, std::numeric_limits<double>::quiet_NaN(), state.compute);
  state.reduce.wait(state.compute, state.compute.issued());
  const TensorView scratch{
      state.scalar_scratch.data(), DType::u8, {static_cast<std::int64_t>(state.scalar_scratch.bytes()), 1, 1, 1}};
  state.communicators.reduce->all_reduce(partial, scratch, state.reduce);
  kernels::copy(partial, result, state.reduce);
  state.compute.wait(state.reduce, state.reduce.issued());
}

/// Sum of squares of all gradients, and the loss, over all ranks.
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

void execute(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.plan->schedule.ops()[at];
  switch (op.kind) {
    case ScheduleOpKind::all_gather: all_gather(step, at); break;
    case ScheduleOpKind::wait_gather: state.compute.wait(state.gather, state.unit(op.unit).gathered); break;
    case ScheduleOpKind::forward:
    case ScheduleOpKind::backward: visit(step, at); break;
    case ScheduleOpKind::release: release(step, op.unit); break;
    case ScheduleOpKind::reduce_scatter: reduce_scatter(step, at, op.unit); break;
    case ScheduleOpKind::wait_reduce: wait_reduce(step, at); break;
    case ScheduleOpKind::norm: norm(step); break;
    case ScheduleOpKind::all_reduce: throw std::logic_error("a schedule of full_shard has no all_reduce line");
    // Planned buffers need no throttle: their place is fixed, and the device itself keeps the order of the text.
    case ScheduleOpKind::throttle:
    case ScheduleOpKind::micro:
    case ScheduleOpKind::vote:
    case ScheduleOpKind::apply: break;
  }
}

void run_to(StepState& step, std::size_t end) {
  while (step.cursor < end) {
    execute(step, step.cursor);
    ++step.cursor;
  }
}

bool is_visit(const ScheduleOp& op) {
  return op.kind == ScheduleOpKind::forward || op.kind == ScheduleOpKind::backward;
}

bool ends_visit(const ScheduleOp& op) {
  return op.kind == ScheduleOpKind::release || op.kind == ScheduleOpKind::throttle ||
         op.kind == ScheduleOpKind::all_gather || op.kind == ScheduleOpKind::reduce_scatter ||
         op.kind == ScheduleOpKind::all_reduce;
}

}  // namespace

std::string visit_text(const ManagerState& state, int unit, Phase phase) {
  const bool known = unit >= 0 && unit < static_cast<int>(state.units.size());
  return fmt::format("{} {}", phase_name(phase), known ? state.name(unit) : fmt::format("of unit {}", unit));
}

std::size_t next_visit(const StepState& step) {
  const auto& ops = step.plan->schedule.ops();
  const auto from = ops.begin() + static_cast<std::ptrdiff_t>(step.cursor);
  return static_cast<std::size_t>(std::find_if(from, ops.end(), is_visit) - ops.begin());
}

void begin_visit(StepState& step, int unit, Phase phase) {
  const ManagerState& state = *step.manager;
  const auto& ops = step.plan->schedule.ops();
  const std::size_t at = next_visit(step);
  const std::string found = visit_text(state, unit, phase);
  if (step.visiting) {
    fail_step(step, Fault::order, fmt::format("expected the visit before to finish, found {}", found));
  }
  if (at == ops.size()) {
    fail_step(step, Fault::order, fmt::format("expected the end of the step, found {}", found));
  }
  const Phase expected = ops[at].kind == ScheduleOpKind::forward ? Phase::forward : Phase::backward;
  if (ops[at].unit != unit || expected != phase) {
    fail_step(step, Fault::order,
              fmt::format("expected {} (micro-batch {}), found {}", visit_text(state, ops[at].unit, expected),
                          ops[at].micro, found));
  }
  run_to(step, at + 1);
  step.visiting = true;
  step.visit = at;
}

void end_visit(StepState& step, int unit, Phase phase) {
  ManagerState& state = *step.manager;
  const auto& ops = step.plan->schedule.ops();
  step.visiting = false;
  const Ticket gathered = state.unit(unit).gathered;
  while (step.cursor < ops.size() && ends_visit(ops[step.cursor])) {
    run_to(step, step.cursor + 1);
  }
  if (state.world == 1) {
    return;
  }
  // The same unit may have been gathered again meanwhile, for the phase that follows: that set is not this visit's.
  if (UnitState& left = state.unit(unit); left.full && left.gathered == gathered) {
    left.full.retag(Category::parameter_full, UseState::retained);
  }
  if (UnitState& left = state.unit(unit); phase == Phase::backward && left.gradient) {
    left.gradient.retag(Category::gradient_full, UseState::awaiting_reduce);
  }
}

void drain(StepState& step) {
  const auto& ops = step.plan->schedule.ops();
  const auto vote =
      std::find_if(ops.begin(), ops.end(), [](const ScheduleOp& op) { return op.kind == ScheduleOpKind::vote; });
  run_to(step, static_cast<std::size_t>(vote - ops.begin()));
}

}  // namespace headroom::detail
