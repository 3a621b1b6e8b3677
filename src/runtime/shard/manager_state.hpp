#pragma once

#include <headroom/allocator.hpp>
#include <headroom/kernels.hpp>
#include <headroom/parameters.hpp>

#include "runtime/shard/consensus.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headroom::detail {

struct StepState;

/// One unit on one rank: what stays, and what comes and goes during a step.
struct UnitState {
  FlatLayout layout;
  Buffer shard, gradient_shard;      ///< [shard_numel], f32.
  Buffer full, gradient;             ///< [padded_numel], f32; slots. At world size 1: views of the two above.
  Ticket gathered = 0;               ///< On the gather stream: `full` is complete.
  Ticket gradient_begun = 0;         ///< On compute: the fill that begins `gradient`.
  std::size_t gradient_last_op = 0;  ///< The operation at which the slot of `gradient` ends.
  bool gradient_written = false;     ///< The gradient shard holds a micro-batch of this step.

  [[nodiscard]] TensorView shard_view() const;
  [[nodiscard]] TensorView gradient_shard_view() const;
};

/// One schedule with its buffers' places: `slot_at[i]` is the slot that begins at operation i, or -1.
struct PlannedSchedule {
  Schedule schedule;
  SlotPlan slots;
  std::vector<int> slot_at;
};

struct PathState {
  std::vector<int> forward, backward;
  PlannedSchedule first, steady;
};

struct StepResult {
  std::int64_t step = 0;
  Ticket ticket = 0;  ///< On compute: the members below are written.
  double loss = 0, gradient_norm = 0;
  bool skipped = false;
  std::int64_t begin_ns = 0, end_ns = 0;
  bool done = false;  ///< Written on compute, read after waiting for `ticket`: the update before it was made.
};

struct ManagerState {
  ManagerState(Communicators group, CachingAllocator& allocator, StreamRef compute_stream,
               const ParameterOptions& with);

  Communicators communicators;
  CachingAllocator& memory;
  StreamRef compute;
  Stream gather_stream, reduce_stream;
  StreamRef gather, reduce;
  ParameterOptions options;
  int rank, world;

  std::vector<std::unique_ptr<UnitState>> units;
  std::map<std::string, PathState> paths;
  std::shared_ptr<const SchedulePolicy> policy;
  Buffer scalars;         ///< kernels::StepScalars.
  Buffer scalar_scratch;  ///< What the all-reduce of two scalars needs.
  bool prepared = false;

  std::int64_t epoch = 0;           ///< Steps whose update was issued.
  std::int64_t epoch_complete = 0;  ///< Steps whose update was seen to complete.
  std::shared_ptr<const StepResult> last_result;
  Ticket applied = 0;       ///< On compute: the last update is complete.
  Ticket gather_after = 0;  ///< On compute: where a gather may start (last release or update).
  bool group_over = false;  ///< A rank has left, or the group is broken: nothing is agreed any more.
  std::shared_ptr<StepState> open_step;
  std::shared_ptr<std::int64_t> last_end_ns = std::make_shared<std::int64_t>(0);  ///< Touched by compute only.

  int parameter_sets = 0, gradient_sets = 0;  ///< Live now, by issue order.
  int parameter_sets_peak = 0, gradient_sets_peak = 0;
  std::vector<SetLifetime> lifetimes;

  [[nodiscard]] UnitState& unit(int index) { return *units[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const UnitState& unit(int index) const { return *units[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const std::string& name(int index) const { return unit(index).layout.unit; }
  [[nodiscard]] TensorView scalars_view(std::int64_t first, std::int64_t count) const;
  void record_lifetime(const SetLifetime& lifetime);
};

/// Plans every path; pure but for what it stores. Throws: InvalidInput.
void plan_paths(ManagerState& state);
/// Allocates gradient shards, scalars and slots. Throws: OutOfMemory.
void allocate_for_steps(ManagerState& state);
/// Everything that must be equal on all ranks, a line each.
[[nodiscard]] std::string describe(const ManagerState& state);

}  // namespace headroom::detail
