#include <headroom/parameters.hpp>

#include "runtime/core/host_span.hpp"
#include "runtime/shard/schedule_runner.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace headroom {

namespace detail {

namespace {

/// What the device has computed becomes numbers of the host, once the update is complete.
void enqueue_report(ManagerState& state, const StepState& step, const std::shared_ptr<StepResult>& result) {
  const auto* scalars = state.scalars_view(0, 4).as<kernels::StepScalars>();
  Operation operation;
  operation.name = "report";
  operation.always = true;
  operation.host = [scalars, result, last_end_ns = state.last_end_ns, begin_ns = step.begin_ns,
                    device = state.compute.device()] {
    result->loss = scalars->loss;
    result->gradient_norm = std::sqrt(scalars->sum_squares);
    result->skipped = !std::isfinite(scalars->sum_squares);
    result->begin_ns = std::max(begin_ns, *last_end_ns);
    result->end_ns = device.now_ns();
    *last_end_ns = result->end_ns;
    result->done = true;
  };
  result->ticket = state.compute.enqueue(std::move(operation));
}

}  // namespace

std::string take_stream_fault(ManagerState& state) {
  for (const StreamRef stream : {state.gather, state.reduce}) {
    if (stream.failed()) {
      state.group_over = true;
      stream.synchronize();
    }
  }
  std::string fault;
  try {
    state.compute.synchronize(state.applied);
    if (state.compute.failed()) {
      state.compute.synchronize();
      fault = kComputeFailed;
    }
  } catch (const CommunicatorError& error) {  // what was gathered is not what its owners sent
    state.group_over = true;
    state.communicators.control->abort(error.what());
    throw;
  } catch (const std::exception& error) {
    fault = error.what();
  }
  if (state.last_result == nullptr || state.last_result->done) {
    state.epoch_complete = state.epoch;
  }
  return fault;
}

void close_step(StepState& step) noexcept {
  step.status = StepState::Status::closed;
  ManagerState& state = *step.manager;
  for (auto& unit : state.units) {
    unit->gradient_written = false;
  }
  if (state.open_step.get() == &step) {
    state.open_step.reset();
  }
}

Verdict timed_vote(ManagerState& state, const Ballot& ballot) {
  const HostSpanTimer timer(state.compute.device(), HostCause::vote);
  return vote(*state.communicators.control, ballot);
}

void vote_or_throw(ManagerState& state, const Ballot& ballot, const std::string& text) {
  const Verdict verdict = timed_vote(state, ballot);
  if (!verdict.unanimous()) {
    throw_verdict(state, ballot, verdict, text);
  }
}

void throw_verdict(ManagerState& state, const Ballot& ballot, const Verdict& verdict, const std::string& text) {
  Communicator& control = *state.communicators.control;
  if (!verdict.same_epoch) {
    state.group_over = true;
    throw TornState(fmt::format(
        "the state is torn: some ranks have updated to step {}, others are at step {}. Restart from a checkpoint",
        verdict.highest_epoch, verdict.lowest_epoch));
  }
  if (verdict.fault == Fault::left && verdict.same_stage && ballot.stage == Stage::end) {
    state.group_over = true;  // everybody has come to the end
    return;
  }
  if (verdict.fault != Fault::none) {
    state.group_over = state.group_over || verdict.fault == Fault::left || ballot.stage == Stage::end;
    const std::string cause = share_text(control, text, verdict.rank);
    throw StepAborted(fmt::format("step {} was dropped (rank {}): {}", state.epoch + 1, verdict.rank, cause),
                      verdict.fault, verdict.rank);
  }
  if (!verdict.same_stage) {
    state.group_over = true;
    throw_first_difference(control, "calls", name_of(ballot.stage));
  }
  if (!verdict.same_hash) {
    state.group_over = true;
    throw_first_difference(control, "steps", text);
  }
  state.group_over = true;
  throw CollectiveMismatch(fmt::format("data cursors differ between ranks: they lie between {} and {}",
                                       verdict.lowest_cursor, verdict.highest_cursor));
}

void fail_step(StepState& step, Fault fault, const std::string& reason) {
  ManagerState& state = *step.manager;
  const std::shared_ptr<StepState> keep = state.open_step;
  drain(step);
  close_step(step);
  const std::string stream_fault = take_stream_fault(state);
  vote_or_throw(state,
                {Stage::commit, fault, static_cast<std::uint64_t>(state.epoch_complete), 0, step.options.data_cursor},
                stream_fault.empty() ? reason : reason + "; then: " + stream_fault);
  throw std::logic_error("a vote with a fault came out as none");
}

std::pair<Fault, std::string> abandon_reason(const StepState& step) {
  const CachingAllocator& memory = step.manager->memory;
  if (memory.statistics().num_ooms > step.refusals_before) {
    return {Fault::allocation, memory.last_refusal()};
  }
  const std::size_t at = next_visit(step);
  const auto& ops = step.ops();
  if (at == ops.size()) {
    return {Fault::exception, "the step was abandoned before its commit"};
  }
  const Phase phase = ops[at].kind == ScheduleOpKind::forward ? Phase::forward : Phase::backward;
  return {Fault::exception, fmt::format("the step was abandoned before {} (micro-batch {})",
                                        visit_text(*step.manager, ops[at].unit, phase), ops[at].micro)};
}

}  // namespace detail

namespace {

const detail::UnitState& leased(const std::shared_ptr<detail::StepState>& step, std::size_t visit, int unit) {
  if (step == nullptr || !step->visiting || step->visit != visit || step->status != detail::StepState::Status::open) {
    throw std::logic_error("a lease was used after it was moved from, its visit finished or its step dropped");
  }
  return std::as_const(*step->manager).unit(unit);
}

TensorView parameter_view(const FlatLayout& layout, const Buffer& flat, DType dtype, int index) {
  const auto at = static_cast<std::size_t>(index);
  const ParameterSpec& spec = layout.parameters.at(at);
  TensorView view{flat.data() + static_cast<std::size_t>(layout.offsets[at]) * size_of(dtype), dtype, {}};
  view.shape.fill(1);
  std::copy(spec.shape.begin(), spec.shape.end(), view.shape.begin());
  return view;
}

}  // namespace

TensorView UnitLease::parameter(int index) const {
  const detail::UnitState& unit = leased(step_, visit_, unit_);
  return parameter_view(unit.layout, unit.full, step_->manager->gathered, index);
}

TensorView UnitLease::parameter(std::string_view name) const {
  return parameter(leased(step_, visit_, unit_).layout.index_of(name));
}

TensorView UnitLease::gradient(int index) const {
  if (phase_ != Phase::backward) {
    throw std::logic_error("a forward lease has no gradients");
  }
  const detail::UnitState& unit = leased(step_, visit_, unit_);
  if (const ParameterSpec& spec = unit.layout.parameters.at(static_cast<std::size_t>(index)); spec.frozen) {
    throw InvalidInput(
        fmt::format("parameter '{}' of unit '{}' is frozen: it has no gradient", spec.name, unit.layout.unit));
  }
  return parameter_view(unit.layout, unit.gradient ? unit.gradient : unit.resident_gradient, DType::f32, index);
}

TensorView UnitLease::gradient(std::string_view name) const {
  return gradient(leased(step_, visit_, unit_).layout.index_of(name));
}

void UnitLease::finish() {
  static_cast<void>(leased(step_, visit_, unit_));
  const detail::HostSpanTimer timer(step_->manager->compute.device(), HostCause::launch);
  detail::end_visit(*step_, unit_, phase_);
}

std::int64_t StepReport::step() const noexcept { return result_->step; }

const detail::StepResult& StepReport::wait() const {
  compute_.synchronize(result_->ticket);
  if (!result_->done) {
    throw DeviceError(Damage::device,
                      fmt::format("step {} was not completed: the compute stream failed before it", result_->step));
  }
  return *result_;
}

double StepReport::loss() const { return wait().loss; }

double StepReport::gradient_norm() const { return wait().gradient_norm; }

bool StepReport::skipped() const { return wait().skipped; }

std::int64_t StepReport::begin_ns() const { return wait().begin_ns; }

std::int64_t StepReport::end_ns() const { return wait().end_ns; }

StepTransaction::~StepTransaction() {
  if (step_ != nullptr && step_->status == detail::StepState::Status::open) {
    step_->status = detail::StepState::Status::abandoned;
  }
}

UnitLease StepTransaction::forward(int unit) { return visit(unit, Phase::forward); }

UnitLease StepTransaction::backward(int unit) { return visit(unit, Phase::backward); }

UnitLease StepTransaction::visit(int unit, Phase phase) {
  require_open();
  const detail::HostSpanTimer timer(step_->manager->compute.device(), HostCause::launch);
  detail::begin_visit(*step_, unit, phase);
  return {step_, step_->visit, unit, phase};
}

void StepTransaction::require_open() const {
  if (step_ == nullptr || step_->status != detail::StepState::Status::open) {
    throw std::logic_error("this step was committed or dropped: begin a new one");
  }
}

TensorView StepTransaction::loss() const {
  require_open();
  return step_->manager->scalars_view(1, 1);
}

StepReport StepTransaction::commit(AdamW& optimizer) {
  require_open();
  detail::StepState& step = *step_;
  detail::ManagerState& state = *step.manager;
  optimizer.check_made_for(state);
  if (step.visiting) {
    detail::fail_step(step, Fault::order, "expected the visit to finish, found commit");
  }
  if (step.plan == nullptr) {
    detail::agree_end(step);
  }
  const auto& ops = step.ops();
  if (const std::size_t at = detail::next_visit(step); at < ops.size()) {
    const Phase phase = ops[at].kind == ScheduleOpKind::forward ? Phase::forward : Phase::backward;
    detail::fail_step(step, Fault::order,
                      fmt::format("expected {} (micro-batch {}), found commit",
                                  detail::visit_text(state, ops[at].unit, phase), ops[at].micro));
  }
  detail::run_to_vote(step);
  const std::string fault = detail::take_stream_fault(state);
  const auto result = std::make_shared<detail::StepResult>();
  result->step = step.number;
  detail::close_step(step);
  const std::uint64_t hash =
      step.plan != nullptr ? step.plan->schedule.hash() : detail::stable_hash(detail::visits_text(step));
  const std::string same = fmt::format("path {}, schedule {:016x}, {}", step.options.path, hash, optimizer.describe());
  detail::vote_or_throw(
      state,
      {detail::Stage::commit, fault.empty() ? Fault::none : Fault::exception,
       static_cast<std::uint64_t>(state.epoch_complete), detail::stable_hash(same), step.options.data_cursor},
      fault.empty() ? same : fault);
  optimizer.apply(state);
  detail::enqueue_report(state, step, result);
  state.last_result = result;
  state.applied = result->ticket;
  state.gather_after = result->ticket;
  ++state.epoch;
  ++state.paths[step.options.path].steps;
  if (step.plan == nullptr) {
    detail::learn_path(step);
  }
  return {result, state.compute};
}

void StepTransaction::abort(Fault fault, const std::string& reason) {
  require_open();
  if (fault == Fault::none || fault == Fault::left) {
    throw std::logic_error("StepTransaction::abort needs the fault that made the step impossible");
  }
  detail::fail_step(*step_, fault, reason);
}

}  // namespace headroom
