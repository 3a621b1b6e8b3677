#include "runtime/core/host_span.hpp"
#include "runtime/shard/step_operations.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace headroom::detail {

namespace {

AllocationRequest request_for(const ManagerState& state, int unit, std::size_t bytes, Category category, UseState use) {
  return {.bytes = bytes,
          .category = category,
          .name = state.name(unit),
          .unit = unit,
          .state = use,
          .region = Region::communication};
}

/// Of the plan, for the buffer that begins at operation `at`.
std::size_t planned_offset(const StepState& step, std::size_t at) {
  const int slot = step.plan->slot_at[at];
  if (slot < 0) {
    throw std::logic_error(fmt::format("schedule line {} ({}) begins a buffer, but the slot plan has none for it", at,
                                       to_text(step.plan->schedule.ops()[at], step.plan->schedule.input())));
  }
  return step.plan->slots.slots[static_cast<std::size_t>(slot)].offset_bytes;
}

Buffer take_slot(const StepState& step, std::size_t at, const AllocationRequest& request, StreamRef stream,
                 std::size_t reserve_offset) {
  ManagerState& state = *step.manager;
  return state.memory.allocate_slot(step.plan != nullptr ? planned_offset(step, at) : reserve_offset, request, stream);
}

bool is_observed(const StepState& step) { return step.manager->observes() && step.plan != nullptr; }

/// Teaches the gather stream which releases are over, so that their blocks are ready for it.
void observe_releases(ManagerState& state, std::size_t count) {
  if (count == 0) {
    return;
  }
  state.gather.wait(state.compute, state.releases[count - 1].ticket);
  state.releases.erase(state.releases.begin(), state.releases.begin() + static_cast<std::ptrdiff_t>(count));
  state.parameter_sets -= static_cast<int>(count);
}

std::size_t complete_releases(const ManagerState& state) {
  std::size_t count = 0;
  while (count < state.releases.size() && state.compute.complete(state.releases[count].ticket)) {
    ++count;
  }
  return count;
}

}  // namespace

Buffer take_set(StepState& step, std::size_t at, UseState use) {
  ManagerState& state = *step.manager;
  const int unit = step.ops()[at].unit;
  const std::size_t bytes = state.set_bytes(unit);
  const AllocationRequest request = request_for(state, unit, bytes, Category::parameter_full, use);
  // A gather comes after the last update. With slots, also after every release before it in the text: that order is
  // what bounds live memory.
  const Ticket after = is_observed(step) ? state.applied : state.gather_after;
  if (state.gather.knows(state.compute) < after) {
    state.gather.wait(state.compute, after);
  }
  if (!is_observed(step)) {
    return take_slot(step, at, request, state.gather, 0);
  }
  if (step.draining) {
    return step.drain_set.view(0, bytes, state.name(unit));
  }
  observe_releases(state, complete_releases(state));
  // Apart from what compute allocates: beside its latest frees, joined with them, no block would be ready for the
  // gather.
  return state.memory.allocate(request, state.gather);
}

bool begins_gradient(const StepState& step, std::size_t at) {
  const ManagerState& state = *step.manager;
  if (step.plan != nullptr) {
    return step.plan->slot_at[at] >= 0;
  }
  const UnitState& unit = state.unit(step.ops()[at].unit);
  return state.world > 1 && (state.gathers() || unit.gradient_written);
}

Buffer take_gradient(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const int unit = step.ops()[at].unit;
  const std::size_t bytes = state.gradient_bytes(unit);
  AllocationRequest request = request_for(state, unit, bytes, Category::gradient_full, UseState::computing);
  if (!is_observed(step)) {
    return take_slot(step, at, request, state.compute, state.reserve_set_bytes);
  }
  if (step.draining) {
    return step.drain_gradient.view(0, bytes, state.name(unit));
  }
  request.region = Region::transients;  // as everything else that compute allocates
  return state.memory.allocate(request, state.compute);
}

void release(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  const ScheduleOp& op = step.ops()[at];
  UnitState& unit = state.unit(op.unit);
  const Ticket released = state.compute.issued();
  state.gather_after = released;
  unit.full.last_use(state.gather, unit.gathered);
  unit.full.last_use(state.compute, released);
  unit.full.reset();
  if (!unit.full_counts) {
    return;
  }
  state.record_lifetime({false, op.unit, state.gather.id(), state.compute.id(), unit.gathered, released});
  if (is_observed(step)) {
    state.releases.push_back({step.number, step.options.path, op, released});
  } else {
    --state.parameter_sets;
  }
}

void throttle(StepState& step, std::size_t at) {
  ManagerState& state = *step.manager;
  if (!is_observed(step) || step.draining) {
    return;  // planned buffers need none: their place is fixed, and the device itself keeps the order of the text
  }
  const ScheduleOp& op = step.ops()[at];
  const std::int64_t number = step.number - op.steps_back;
  const auto named = [&](const Release& release) {
    return release.step == number && release.path == step.options.path && release.op.unit == op.unit &&
           release.op.phase == op.phase && release.op.repeat == op.repeat && release.op.micro == op.micro;
  };
  // From the newest: a step that was dropped left releases of the same names. Where it is not there, it was seen
  // before, unless that step took another path: then all that is left of it, so that the bound holds.
  const auto of_another_path = [&](const Release& release) {
    return release.step <= number && release.path != step.options.path;
  };
  auto end = std::find_if(state.releases.rbegin(), state.releases.rend(), named).base();
  if (end == state.releases.begin()) {
    end = std::find_if(state.releases.rbegin(), state.releases.rend(), of_another_path).base();
  }
  if (end == state.releases.begin()) {
    return;
  }
  if (!state.compute.complete(std::prev(end)->ticket)) {
    const HostSpanTimer timer(state.compute.device(), HostCause::throttle);
    state.compute.synchronize(std::prev(end)->ticket);
  }
  observe_releases(state, static_cast<std::size_t>(end - state.releases.begin()));
}

void begin_drain(StepState& step) {
  ManagerState& state = *step.manager;
  if (std::exchange(step.draining, true) || !is_observed(step) || state.world == 1) {
    return;
  }
  std::size_t set_bytes = 0;
  std::size_t gradient_bytes = 0;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    set_bytes = std::max(set_bytes, state.set_bytes(i));
    gradient_bytes = std::max(gradient_bytes, state.gradient_bytes(i));
  }
  const auto take = [&state](std::size_t offset, std::size_t bytes, StreamRef stream) {
    stream.wait(state.compute, state.compute.issued());
    return state.memory.allocate_slot(
        offset, {.bytes = bytes, .category = Category::communication, .name = "drain", .region = Region::communication},
        stream);
  };
  if (state.gathers()) {
    step.drain_set = take(0, set_bytes, state.gather);
  }
  step.drain_gradient = take(state.reserve_set_bytes, gradient_bytes, state.reduce);
}

void end_drain(StepState& step) {
  ManagerState& state = *step.manager;
  const auto give_back = [&state](Buffer& buffer, StreamRef stream) {
    if (buffer) {
      state.compute.wait(stream, stream.issued());
      buffer.last_use(stream, stream.issued());
      buffer.reset();
    }
  };
  give_back(step.drain_set, state.gather);
  give_back(step.drain_gradient, state.reduce);
}

}  // namespace headroom::detail
