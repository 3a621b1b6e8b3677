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

}  // namespace

}  // namespace detail

ParameterManager::ParameterManager(Communicators communicators, CachingAllocator& memory, StreamRef compute,
                                   const ParameterOptions& options)
    : state_(std::make_shared<detail::ManagerState>(std::move(communicators), memory, compute, options)) {
  state_->policy = backward_pre({.forward_prefetch = 1, .limit_all_gathers = 2, .limit_reduce_scatters = 2});
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
  detail::forget_plans(*state_);
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
  state_->stale = true;
}

void ParameterManager::set_policy(std::shared_ptr<const SchedulePolicy> policy) {
  if (policy == nullptr) {
    throw InvalidInput("set_policy needs a policy, found none");
  }
  state_->policy = std::move(policy);
  detail::forget_plans(*state_);
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
  if (found == state_->paths.end() || found->second.steady.schedule.ops().empty()) {
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
