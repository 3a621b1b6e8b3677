#include <headroom/parameters.hpp>

#include "runtime/shard/schedule_runner.hpp"

#include <spdlog/fmt/fmt.h>

/// The life of a training run between its steps: made ready, begun, ended; each agreed by all ranks.
namespace headroom {

namespace detail {

namespace {

/// A step that was dropped without a vote: its peers wait for one. Throws what they throw.
void settle_abandoned(ManagerState& state) {
  if (state.open_step == nullptr) {
    return;
  }
  const std::shared_ptr<StepState> step = state.open_step;
  if (step->status == StepState::Status::open) {
    throw std::logic_error("a step is open: commit it, or let its transaction go, before the next");
  }
  const auto [fault, reason] = abandon_reason(*step);
  fail_step(*step, fault, reason);
}

std::uint64_t epoch_of(const ManagerState& state) { return static_cast<std::uint64_t>(state.epoch); }

/// The last word of a rank that goes: its peers' next agreement hears it.
void leave(ManagerState& state) noexcept {
  try {
    if (!state.prepared || state.group_over) {
      return;
    }
    try {
      if (state.open_step != nullptr) {
        state.open_step->status = StepState::Status::abandoned;
        settle_abandoned(state);
      }
    } catch (const StepAborted&) {  // said to the peers, which is all that was wanted
    }
    if (!state.group_over) {
      // An exception that takes the rank away after its last commit must not pass for a regular end.
      const bool unwinding = std::uncaught_exceptions() > 0;
      vote_or_throw(state, {Stage::end, unwinding ? Fault::exception : Fault::left, epoch_of(state), 0, 0},
                    fmt::format("{} after step {}", unwinding ? "ended by an exception" : "left", state.epoch));
    }
  } catch (...) {  // a destructor has nobody to tell; the peers meet their own error or deadline
  }
}

}  // namespace

}  // namespace detail

ParameterManager::~ParameterManager() {
  detail::leave(*state_);
  state_->open_step.reset();
}

void ParameterManager::prepare() {
  detail::ManagerState& state = *state_;
  detail::settle_abandoned(state);
  state.stale = true;
  // A rank that cannot, tells it to all before anybody throws.
  Fault fault = Fault::none;
  OutOfMemory::Details details;
  std::string text;
  try {
    detail::plan_paths(state);
    detail::allocate_for_steps(state);
    text = detail::describe(state);
  } catch (const OutOfMemory& refusal) {
    fault = Fault::allocation;
    details = refusal.details();
    text = refusal.what();
  } catch (const InvalidInput& error) {
    fault = Fault::bad_input;
    text = error.what();
  } catch (const std::exception& error) {  // of a policy that is not ours, say
    fault = Fault::exception;
    text = error.what();
  }
  Communicator& control = *state.communicators.control;
  const detail::Ballot ballot{detail::Stage::prepare, fault, detail::epoch_of(state), detail::stable_hash(text), 0};
  const detail::Verdict verdict = detail::vote(control, ballot);
  if (verdict.fault == Fault::left || !verdict.same_stage) {  // a peer does something else: it says the same
    detail::throw_verdict(state, ballot, verdict, text);
  }
  if (verdict.fault != Fault::none) {
    const std::string cause = fmt::format("the run cannot be prepared (rank {}): {}", verdict.rank,
                                          detail::share_text(control, text, verdict.rank));
    if (verdict.fault == Fault::allocation) {
      throw OutOfMemory(cause, details);
    }
    if (verdict.fault == Fault::bad_input) {
      throw InvalidInput(cause);
    }
    state.group_over = true;
    throw StepAborted(cause, verdict.fault, verdict.rank);
  }
  if (!verdict.same_hash) {
    state.group_over = true;
    detail::throw_first_difference(control, "models, policies or schedules", text);
  }
  state.gather_after = state.compute.issued();
  state.applied = state.compute.issued();
  state.prepared = true;
  state.stale = false;
}

StepTransaction ParameterManager::begin_step(const StepOptions& options) {
  detail::ManagerState& state = *state_;
  if (state.group_over) {
    throw CommunicatorError("no step can begin: a rank has left, or the process group is broken");
  }
  detail::settle_abandoned(state);
  const auto [path, is_new] = state.paths.try_emplace(options.path);
  if (is_new) {
    path->second.declared = options.path == detail::kDefaultPath && options.kind == Path::fixed;
    state.stale = state.stale || path->second.declared;
  }
  if (state.stale) {
    prepare();
  }
  const bool failed = state.compute.failed();
  const std::string fault = failed ? detail::take_stream_fault(state) : std::string();
  const std::string same = fmt::format("path {}{}", options.path, options.kind == Path::dynamic ? ", dynamic" : "");
  detail::vote_or_throw(state,
                        {detail::Stage::begin, failed ? Fault::exception : Fault::none,
                         static_cast<std::uint64_t>(failed ? state.epoch_complete : state.epoch),
                         detail::stable_hash(same), options.data_cursor},
                        failed ? fault : same);
  path->second.kind = options.kind;
  const bool planned = path->second.known() && options.kind == Path::fixed;
  if (!planned && !state.reserves) {
    state.reserves = true;
    try {
      prepare();
    } catch (...) {  // planned steps need no reserve
      state.reserves = false;
      throw;
    }
  }
  auto step = std::make_shared<detail::StepState>();
  step->manager = &state;
  if (planned) {
    step->plan = state.epoch == 0 ? &path->second.first : &path->second.steady;
  }
  step->options = options;
  step->number = state.epoch + 1;
  step->begin_ns = state.compute.device().now_ns();
  step->refusals_before = state.memory.statistics().num_ooms;
  state.memory.mark_step(step->number);
  // Slots may have been in use since the last step: by a step that was drained, or by another manager of this
  // allocator.
  state.gather_after = state.compute.issued();
  kernels::fill(state.scalars_view(0, 2), 0, state.compute);
  state.open_step = step;
  return StepTransaction(std::move(step));
}

void ParameterManager::finish() {
  detail::ManagerState& state = *state_;
  if (state.group_over || !state.prepared) {
    return;
  }
  detail::settle_abandoned(state);
  const std::string fault = detail::take_stream_fault(state);
  detail::vote_or_throw(state,
                        {detail::Stage::end, fault.empty() ? Fault::left : Fault::exception,
                         static_cast<std::uint64_t>(state.epoch_complete), 0, 0},
                        fault.empty() ? fmt::format("left after step {}", state.epoch) : fault);
}

}  // namespace headroom
