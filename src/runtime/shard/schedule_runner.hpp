#pragma once

#include "runtime/shard/step_state.hpp"

#include <string>
#include <utility>

namespace headroom::detail {

/// Issues everything up to and including the visit. Throws: StepAborted, on all ranks, where the path has another next.
void begin_visit(StepState& step, int unit, Phase phase);
/// Issues what belongs to the end of the visit: its release, a prefetch, its reduction.
void end_visit(StepState& step, int unit, Phase phase);
/// Issues what comes before the vote: where all visits are done, the last waits and the norm.
void run_to_vote(StepState& step);
/// The same without computing anything, so that no peer waits for this rank.
void drain(StepState& step);
/// Where the next visit stands in the schedule, or the operation count if there is none.
[[nodiscard]] std::size_t next_visit(const StepState& step);

/// "forward h.3": how errors speak of a visit.
[[nodiscard]] std::string visit_text(const ManagerState& state, int unit, Phase phase);

// Without a plan (unplanned_step.cpp): visits are agreed as they come.

/// Agrees on the visit with all ranks, then appends its lines. Throws: StepAborted, on all ranks, where theirs is
/// another one or a rank has failed.
void agree_visit(StepState& step, int unit, Phase phase);
/// Agrees that the step's visits are over, then appends its ending. Throws: as agree_visit.
void agree_end(StepState& step);
/// Makes the visits of a committed step its path's, where it is fixed and its micro-batches are alike.
void learn_path(const StepState& step);
/// What the step's visits were, for the vote.
[[nodiscard]] std::string visits_text(const StepState& step);

/// Drains, votes with this fault, and throws what all ranks throw.
[[noreturn]] void fail_step(StepState& step, Fault fault, const std::string& reason);
/// Votes. Returns where all ranks are well and alike; else throws the same error on every rank. `text`: the fault's
/// reason, or, without one, what `ballot.hash` stands for.
void vote_or_throw(ManagerState& state, const Ballot& ballot, const std::string& text);
[[nodiscard]] Verdict timed_vote(ManagerState& state, const Ballot& ballot);
/// What a verdict that is not unanimous means; returns only where all ranks have come to the end.
void throw_verdict(ManagerState& state, const Ballot& ballot, const Verdict& verdict, const std::string& text);
inline constexpr const char* kComputeFailed =
    "the compute stream has failed and runs nothing any more: end the process";

/// What went wrong on compute, or "". Blocks until the last update is complete. Throws: an error of communication at
/// once, since its group cannot vote.
[[nodiscard]] std::string take_stream_fault(ManagerState& state);
/// The step takes no further part in anything.
void close_step(StepState& step) noexcept;
/// Why a step that went out of scope did: a refused allocation is known, anything else is not.
[[nodiscard]] std::pair<Fault, std::string> abandon_reason(const StepState& step);

}  // namespace headroom::detail
