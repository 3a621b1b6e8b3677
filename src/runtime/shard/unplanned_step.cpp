#include "runtime/shard/schedule_runner.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

/// A step whose visits nobody knows beforehand: any control flow, as long as all ranks take the same. Each visit
/// gathers for itself and reduces at its end, in the manager's reserve, so at most one set and one gradient are live.
namespace headroom::detail {

namespace {

/// A vote in the middle of a step: everything of the visit before is issued, nothing of the next one.
void agree(StepState& step, const std::string& text) {
  ManagerState& state = *step.manager;
  const std::shared_ptr<StepState> keep = state.open_step;
  const auto epoch = static_cast<std::uint64_t>(state.epoch);
  const Ballot ballot{Stage::visit, Fault::none, epoch, stable_hash(text), step.options.data_cursor};
  const Verdict verdict = timed_vote(state, ballot);
  if (verdict.unanimous()) {
    return;
  }
  drain(step);
  close_step(step);
  if (verdict.fault == Fault::none && verdict.same_stage && verdict.same_epoch && verdict.same_cursor) {
    const Difference difference = find_difference(*state.communicators.control, text);
    throw StepAborted(fmt::format("step {} was dropped (rank {}): ranks take different branches: rank 0 comes to {}, "
                                  "rank {} to {}. Take branches from what all ranks know alike",
                                  step.number, difference.rank, difference.expected, difference.rank, difference.found),
                      Fault::order, difference.rank);
  }
  throw_verdict(state, ballot, verdict, text);
}

}  // namespace

void agree_visit(StepState& step, int unit, Phase phase) {
  ManagerState& state = *step.manager;
  if (unit < 0 || unit >= static_cast<int>(state.units.size())) {
    fail_step(step, Fault::order, fmt::format("expected units 0 to {}, found {}", state.units.size() - 1, unit));
  }
  std::vector<ScheduleOp>& ops = step.visited;
  const bool backward = phase == Phase::backward;
  agree(step,
        fmt::format("visit {}, {}", std::count_if(ops.begin(), ops.end(), is_visit), visit_text(state, unit, phase)));
  const auto last = std::find_if(ops.rbegin(), ops.rend(), is_visit);
  const bool turns = last != ops.rend() && last->kind == ScheduleOpKind::backward && !backward;
  const int micro = (last != ops.rend() ? last->micro : 0) + (turns ? 1 : 0);
  const auto append = [&](ScheduleOpKind kind) { ops.push_back({kind, unit, phase, 0, micro, 0}); };
  if (state.gathers()) {
    append(ScheduleOpKind::all_gather);
    append(ScheduleOpKind::wait_gather);
  }
  if (backward && state.world > 1) {
    ops.push_back({.kind = ScheduleOpKind::wait_reduce});
  }
  append(backward ? ScheduleOpKind::backward : ScheduleOpKind::forward);
  if (state.gathers()) {
    append(ScheduleOpKind::release);
  }
  if (backward && state.world > 1 && state.unit(unit).trains()) {
    append(state.gathers() ? ScheduleOpKind::reduce_scatter : ScheduleOpKind::all_reduce);
  }
}

void agree_end(StepState& step) {
  const ManagerState& state = *step.manager;
  agree(step, "the end of the step");
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    // Across groups once, at the end: nobody knew before that a visit was the unit's last.
    if (state.gathers() && state.shard_ranks < state.world && state.unit(i).gradient_written) {
      step.visited.push_back({.kind = ScheduleOpKind::all_reduce, .unit = i});
    }
  }
  for (const ScheduleOpKind kind :
       {ScheduleOpKind::wait_reduce, ScheduleOpKind::norm, ScheduleOpKind::vote, ScheduleOpKind::apply}) {
    step.visited.push_back({.kind = kind});
  }
}

void learn_path(const StepState& step) {
  ManagerState& state = *step.manager;
  PathState& path = state.paths[step.options.path];
  if (step.options.kind == Path::dynamic || path.known()) {
    return;
  }
  struct MicroBatch {
    std::vector<int> forward, backward;
    bool operator==(const MicroBatch&) const = default;
  };
  std::vector<MicroBatch> micro_batches;
  for (const ScheduleOp& op : step.visited) {
    if (is_visit(op)) {
      micro_batches.resize(static_cast<std::size_t>(op.micro) + 1);
      MicroBatch& visits = micro_batches.back();
      (op.kind == ScheduleOpKind::forward ? visits.forward : visits.backward).push_back(op.unit);
    }
  }
  path.unlearnt.clear();
  if (micro_batches.size() != static_cast<std::size_t>(state.options.micro_batches)) {
    path.unlearnt = fmt::format("its last step had {} turns from backward to forward, {} micro-batches have {}",
                                static_cast<std::int64_t>(micro_batches.size()) - 1, state.options.micro_batches,
                                state.options.micro_batches - 1);
  } else if (std::any_of(micro_batches.begin(), micro_batches.end(),
                         [&](const MicroBatch& each) { return !(each == micro_batches.front()); })) {
    path.unlearnt = "the micro-batches of its last step visited different units";
  } else if (micro_batches.front().forward.empty()) {
    path.unlearnt = "its last step had no forward visit";
  } else {
    path.forward = micro_batches.front().forward;
    path.backward = micro_batches.front().backward;
    try {
      plan_path(state, path);
      state.stale = true;                    // its slots are committed before its next step
    } catch (const std::exception& error) {  // the policy cannot: its steps go on without a plan
      path.unlearnt = error.what();
      path.forward.clear();
      path.backward.clear();
    }
  }
}

std::string visits_text(const StepState& step) {
  std::string text;
  for (const ScheduleOp& op : step.visited) {
    if (is_visit(op)) {
      text += visit_text(*step.manager, op.unit, op.kind == ScheduleOpKind::forward ? Phase::forward : Phase::backward);
      text += ';';
    }
  }
  return text;
}

}  // namespace headroom::detail
