#include "runtime/shard/schedule_runner.hpp"

#include "runtime/shard/step_operations.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom::detail {

const char* phase_name(Phase phase) noexcept { return phase == Phase::forward ? "forward" : "backward"; }

namespace {

void visit(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.ops()[at];
  const bool backward = op.kind == ScheduleOpKind::backward;
  const char* phase = backward ? "backward" : "forward";
  state.memory.mark_unit(op.unit, phase, phase);
  if (state.gathers()) {
    state.unit(op.unit).full.retag(Category::parameter_full, UseState::current, state.compute);
    if (state.options.verify && !step.draining) {
      verify_set(state, op.unit);
    }
  }
  if (backward) {
    begin_gradient(step, at);
  }
}

void execute(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.ops()[at];
  switch (op.kind) {
    case ScheduleOpKind::all_gather: all_gather(step, at); break;
    case ScheduleOpKind::wait_gather: state.compute.wait(state.gather, state.unit(op.unit).gathered); break;
    case ScheduleOpKind::forward:
    case ScheduleOpKind::backward: visit(step, at); break;
    case ScheduleOpKind::release: release(step, at); break;
    case ScheduleOpKind::throttle: throttle(step, at); break;
    case ScheduleOpKind::reduce_scatter: reduce_scatter(step, at); break;
    case ScheduleOpKind::all_reduce: all_reduce(step, at); break;
    case ScheduleOpKind::wait_reduce: wait_reduce(step, op.unit < 0 ? nullptr : &op); break;
    case ScheduleOpKind::norm: norm(step); break;
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
  const auto& ops = step.ops();
  const auto from = ops.begin() + static_cast<std::ptrdiff_t>(step.cursor);
  return static_cast<std::size_t>(std::find_if(from, ops.end(), is_visit) - ops.begin());
}

void begin_visit(StepState& step, int unit, Phase phase) {
  const ManagerState& state = *step.manager;
  const std::string found = visit_text(state, unit, phase);
  if (step.visiting) {
    fail_step(step, Fault::order, fmt::format("expected the visit before to finish, found {}", found));
  }
  if (step.plan == nullptr) {
    agree_visit(step, unit, phase);
  }
  const auto& ops = step.ops();
  const std::size_t at = next_visit(step);
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
  const auto& ops = step.ops();
  const int micro = ops[step.visit].micro;
  step.visiting = false;
  const Ticket gathered = state.unit(unit).gathered;
  while (step.cursor < ops.size() && ends_visit(ops[step.cursor])) {
    run_to(step, step.cursor + 1);
  }
  UnitState& left = state.unit(unit);
  // The same unit may have been gathered again meanwhile, for the phase that follows: that set is not this visit's.
  if (state.gathers() && left.full && left.gathered == gathered) {
    left.full.retag(Category::parameter_full, UseState::retained, state.compute);
  }
  if (phase == Phase::backward && left.gradient) {
    const bool stays = state.options.accumulation == Accumulation::full && micro + 1 < state.options.micro_batches;
    left.gradient.retag(Category::gradient_full, stays ? UseState::retained : UseState::awaiting_reduce, state.compute);
  }
}

void run_to_vote(StepState& step) {
  const auto& ops = step.ops();
  const auto vote =
      std::find_if(ops.begin(), ops.end(), [](const ScheduleOp& op) { return op.kind == ScheduleOpKind::vote; });
  run_to(step, static_cast<std::size_t>(vote - ops.begin()));
}

void drain(StepState& step) {
  begin_drain(step);
  run_to_vote(step);
  wait_reduce(step, nullptr);
  end_drain(step);
}

}  // namespace headroom::detail
