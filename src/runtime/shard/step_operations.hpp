#pragma once

#include "runtime/shard/step_state.hpp"

/// What each line of a schedule does. All of them enqueue, none waits for the device but `throttle`.
namespace headroom::detail {

[[nodiscard]] const char* phase_name(Phase phase) noexcept;

// Parameters (gather.cpp).
void all_gather(StepState& step, std::size_t at);
/// Enqueues, on compute, the comparison of the gathered set's checksums with its owners'.
void verify_set(ManagerState& state, int index);

// Gradients (reduce.cpp).
void begin_gradient(StepState& step, std::size_t at);
void reduce_scatter(StepState& step, std::size_t at);
void all_reduce(StepState& step, std::size_t at);
/// Orders compute after every outstanding reduction up to that of `until` (none: all), and frees their gradients.
void wait_reduce(StepState& step, const ScheduleOp* until);
/// Sum of squares of all gradients, and the loss, over all ranks.
void norm(StepState& step);

// Buffers (step_buffers.cpp): slots of the plan; with observed buffers the allocator's; without a plan, and where an
// observed step is drained, the manager's reserve.
[[nodiscard]] Buffer take_set(StepState& step, std::size_t at, UseState use);  ///< Throws: OutOfMemory, if observed.
[[nodiscard]] bool begins_gradient(const StepState& step, std::size_t at);
[[nodiscard]] Buffer take_gradient(StepState& step, std::size_t at);  ///< Throws: OutOfMemory, if observed.
void release(StepState& step, std::size_t at);
/// Blocks until the release that the line names is complete. Throws: the error of the work before it.
void throttle(StepState& step, std::size_t at);
/// From now on an observed step takes its buffers from the reserve: what it computes does not matter any more.
void begin_drain(StepState& step);
void end_drain(StepState& step);

}  // namespace headroom::detail
