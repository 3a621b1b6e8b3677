#pragma once

#include "runtime/shard/manager_state.hpp"

#include <cstdint>
#include <string>

namespace headroom::detail {

/// A step on its way through its schedule. `cursor` is the next operation that was not issued.
struct StepState {
  enum class Status : std::uint8_t { open, abandoned, closed };

  ManagerState* manager = nullptr;
  std::string path;
  const PlannedSchedule* plan = nullptr;
  StepOptions options;
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;
  std::size_t cursor = 0;
  Status status = Status::open;
  bool visiting = false;  ///< A lease is out, for the visit issued last.
  std::size_t visit = 0;  ///< That visit's operation.
  std::uint64_t refusals_before = 0;

  /// A gradient whose reduction was issued; freed by the operation at which its slot ends.
  struct Reducing {
    int unit = -1;
    Buffer gradient;
    std::size_t last_op = 0;
    Ticket begun = 0, computed = 0, reduced = 0;
  };
  std::vector<Reducing> reducing;
};

/// Issues everything up to and including the visit. Throws: StepAborted, on all ranks, where the path has another next.
void begin_visit(StepState& step, int unit, Phase phase);
/// Issues what belongs to the end of the visit: its release, a prefetch, its reduction.
void end_visit(StepState& step, int unit, Phase phase);
/// Issues the rest of the schedule before its vote, without computing anything, so that no peer waits for this rank.
void drain(StepState& step);
/// Where the next visit stands in the schedule, or the operation count if there is none.
[[nodiscard]] std::size_t next_visit(const StepState& step);

/// "forward h.3": how errors speak of a visit.
[[nodiscard]] std::string visit_text(const ManagerState& state, int unit, Phase phase);

/// Drains, votes with this fault, and throws what all ranks throw.
[[noreturn]] void fail_step(StepState& step, Fault fault, const std::string& reason);
/// Votes. Returns where all ranks are well and alike; else throws the same error on every rank. `text`: the fault's
/// reason, or, without one, what `ballot.hash` stands for.
void vote_or_throw(ManagerState& state, const Ballot& ballot, const std::string& text);
inline constexpr const char* kComputeFailed =
    "the compute stream has failed and runs nothing any more: end the process";

/// What went wrong on compute, or "". Blocks until the last update is complete. Throws: a communication stream's error
/// at once, since its group cannot vote.
[[nodiscard]] std::string take_stream_fault(ManagerState& state);
/// The step takes no further part in anything.
void close_step(StepState& step) noexcept;
/// Why a step that went out of scope did: a refused allocation is known, anything else is not.
[[nodiscard]] std::pair<Fault, std::string> abandon_reason(const StepState& step);

}  // namespace headroom::detail
