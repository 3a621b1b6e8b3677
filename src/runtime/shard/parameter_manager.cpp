#include <headroom/parameters.hpp>

#include "runtime/core/host_span.hpp"
#include "runtime/shard/schedule_runner.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom {

namespace detail {

namespace {

/// How many parameters the units before `index` have. Values are drawn by place in registration order, so that they do
/// not depend on which parameters make a unit.
std::uint64_t parameters_before(const ManagerState& state, int index) {
  std::uint64_t count = 0;
  for (int unit = 0; unit < index; ++unit) {
    count += state.unit(unit).layout.parameters.size();
  }
  return count;
}

/// The whole shard: zero, padding included, then each parameter's own elements.
void initialize_shard(ManagerState& state, int index) {
  const UnitState& unit = state.unit(index);
  kernels::fill(unit.shard_view(), 0, {state.compute, index});
  for (const FlatLayout::Range& range : unit.layout.ranges(state.shard_rank)) {
    const ParameterSpec& spec = unit.layout.parameters[static_cast<std::size_t>(range.parameter)];
    const TensorView view{unit.shard.data() + static_cast<std::size_t>(range.shard_offset) * sizeof(float),
                          DType::f32,
                          {range.numel, 1, 1, 1}};
    if (spec.initializer.standard_deviation == 0) {
      kernels::fill(view, static_cast<double>(spec.initializer.mean), {state.compute, index});
    } else {
      kernels::fill_normal(view,
                           {.key = state.options.seed,
                            .stream = parameters_before(state, index) + static_cast<std::uint64_t>(range.parameter),
                            .first_index = range.begin,
                            .mean = static_cast<double>(spec.initializer.mean),
                            .stddev = static_cast<double>(spec.initializer.standard_deviation)},
                           {state.compute, index});
    }
  }
}

void check_visits(const ManagerState& state, const std::string& path, const std::vector<int>& visits) {
  for (const int unit : visits) {
    if (unit < 0 || unit >= static_cast<int>(state.units.size())) {
      throw InvalidInput(fmt::format("path '{}': expected units 0 to {}, found {}", path,
                                     static_cast<int>(state.units.size()) - 1, unit));
    }
  }
}

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

ParameterManager::ParameterManager(Communicators communicators, CachingAllocator& memory, StreamRef compute,
                                   const ParameterOptions& options)
    : state_(std::make_shared<detail::ManagerState>(std::move(communicators), memory, compute, options)) {
  state_->policy = backward_pre({.forward_prefetch = 1});
}

ParameterManager::~ParameterManager() {
  detail::leave(*state_);
  state_->open_step.reset();
}

int ParameterManager::add_unit(std::string_view name, std::vector<ParameterSpec> parameters) {
  if (state_->prepared) {
    throw std::logic_error("units are added before prepare()");
  }
  for (const auto& unit : state_->units) {
    if (unit->layout.unit == name) {
      throw InvalidInput(fmt::format("there are two units named '{}'", name));
    }
  }
  auto unit = std::make_unique<detail::UnitState>();
  unit->layout = FlatLayout::make(name, std::move(parameters), state_->shard_ranks);
  const int index = unit_count();
  unit->shard = state_->memory.allocate({.bytes = unit->shard_view().bytes(),
                                         .category = Category::parameter_shard,
                                         .name = name,
                                         .unit = index,
                                         .region = Region::residents},
                                        state_->compute);
  unit->shard.record_use(state_->gather);
  state_->units.push_back(std::move(unit));
  detail::initialize_shard(*state_, index);
  return index;
}

void ParameterManager::declare_path(const std::string& name, std::vector<int> forward, std::vector<int> backward) {
  detail::check_visits(*state_, name, forward);
  detail::check_visits(*state_, name, backward);
  if (forward.empty()) {
    throw InvalidInput(fmt::format("path '{}' visits no unit", name));
  }
  detail::PathState path;
  path.forward = std::move(forward);
  path.backward = std::move(backward);
  state_->paths[name] = std::move(path);
  state_->prepared = false;
}

void ParameterManager::set_policy(std::shared_ptr<const SchedulePolicy> policy) {
  if (policy == nullptr) {
    throw InvalidInput("set_policy needs a policy, found none");
  }
  state_->policy = std::move(policy);
  state_->prepared = false;
}

void ParameterManager::prepare() {
  detail::ManagerState& state = *state_;
  detail::settle_abandoned(state);
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
  const detail::Verdict verdict = detail::vote(
      control, {detail::Stage::prepare, fault, static_cast<std::uint64_t>(state.epoch), detail::stable_hash(text), 0});
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
  if (!verdict.same_stage || !verdict.same_hash) {
    state.group_over = true;
    detail::throw_first_difference(control, "models, policies or schedules", text);
  }
  state.gather_after = state.compute.issued();
  state.applied = state.compute.issued();
  state.prepared = true;
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
    state.prepared = state.prepared && !path->second.declared;
  }
  if (!state.prepared) {
    prepare();
  }
  const bool failed = state.compute.failed();
  const std::string same = fmt::format("path {}{}", options.path, options.kind == Path::dynamic ? ", dynamic" : "");
  detail::vote_or_throw(state,
                        {detail::Stage::begin, failed ? Fault::exception : Fault::none, detail::epoch_of(state),
                         detail::stable_hash(same), options.data_cursor},
                        failed ? detail::kComputeFailed : same);
  path->second.kind = options.kind;
  const bool planned = path->second.known() && options.kind == Path::fixed;
  if (!planned && !state.reserves) {
    state.reserves = true;
    prepare();
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

int ParameterManager::unit_count() const noexcept { return static_cast<int>(state_->units.size()); }

const FlatLayout& ParameterManager::layout(int unit) const {
  return state_->units.at(static_cast<std::size_t>(unit))->layout;
}

std::int64_t ParameterManager::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const auto& unit : state_->units) {
    count += unit->layout.numel;
  }
  return count;
}

const Schedule& ParameterManager::schedule(const std::string& path) const {
  const auto found = state_->paths.find(path);
  if (found == state_->paths.end() || !found->second.known() || !state_->prepared) {
    throw InvalidInput(
        fmt::format("path '{}' has no schedule: declare it, or let a step teach it, then prepare()", path));
  }
  return found->second.steady.schedule;
}

std::vector<PathStatus> ParameterManager::paths() const {
  std::vector<PathStatus> all;
  for (const auto& [name, path] : state_->paths) {
    PathStatus status{name, path.declared, path.steps, {}};
    if (path.kind == Path::dynamic) {
      status.prefetch_off = "it is dynamic: its visits may differ from step to step";
    } else if (!path.unlearnt.empty()) {
      status.prefetch_off = path.unlearnt;
    } else if (!path.known()) {
      status.prefetch_off = "its visits are not known before its first step";
    }
    all.push_back(std::move(status));
  }
  return all;
}

std::int64_t ParameterManager::epoch() const noexcept { return state_->epoch; }

int ParameterManager::parameter_sets_peak() const noexcept { return state_->parameter_sets_peak; }

int ParameterManager::gradient_sets_peak() const noexcept { return state_->gradient_sets_peak; }

std::uint64_t ParameterManager::checksums_compared() const noexcept { return *state_->checksums_compared; }

std::vector<SetLifetime> ParameterManager::take_lifetimes() { return std::exchange(state_->lifetimes, {}); }

}  // namespace headroom
