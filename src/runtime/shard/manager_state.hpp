#pragma once

#include <headroom/allocator.hpp>
#include <headroom/kernels.hpp>
#include <headroom/parameters.hpp>

#include "runtime/shard/consensus.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headroom::detail {

struct StepState;

/// One unit on one rank: what stays, and what comes and goes during a step.
struct UnitState {
  FlatLayout layout;
  Buffer shard;                   ///< [shard_numel], f32: the masters.
  Buffer gradient_shard;          ///< [trainable.shard_numel], f32.
  Buffer full;                    ///< [padded_numel], gathered dtype. Where nothing is gathered: a view of `shard`.
  Buffer gradient;                ///< [trainable.padded_numel], f32; empty where it is `resident_gradient`.
  Buffer resident_gradient;       ///< Where nothing is sharded: a view of `gradient_shard`.
  Buffer checksums;               ///< With verify: i32 [shard ranks], those of the owners of `full`.
  Ticket gathered = 0;            ///< On the gather stream: `full` is complete.
  Ticket verified = 0;            ///< On compute: `checksums` were read.
  Ticket gradient_begun = 0;      ///< On compute: the fill that begins `gradient`.
  bool full_counts = false;       ///< `full` is one of the live sets: not where a drain lets it share the reserve.
  bool gradient_counts = false;   ///< So of `gradient`.
  bool gradient_written = false;  ///< The gradient shard holds something of this step.

  [[nodiscard]] TensorView shard_view() const;
  [[nodiscard]] TensorView gradient_shard_view() const;
  [[nodiscard]] bool trains() const noexcept { return layout.trainable.padded_numel > 0; }
};

/// One schedule with its buffers' places: `slot_at[i]` is the slot that begins at operation i, or -1.
struct PlannedSchedule {
  Schedule schedule;
  SlotPlan slots;
  std::vector<int> slot_at;
};

struct PathState {
  std::vector<int> forward, backward;  ///< Empty: not known.
  bool declared = true;
  Path kind = Path::fixed;  ///< As begun last.
  std::int64_t steps = 0;
  std::string unlearnt;  ///< Why its steps so far did not teach its visits.
  PlannedSchedule first, steady;

  [[nodiscard]] bool known() const noexcept { return !forward.empty(); }
};

struct StepResult {
  std::int64_t step = 0;
  Ticket ticket = 0;  ///< On compute: the members below are written.
  double loss = 0, gradient_norm = 0;
  bool skipped = false;
  std::int64_t begin_ns = 0, end_ns = 0;
  bool done = false;  ///< Written on compute, read after waiting for `ticket`: the update before it was made.
};

/// A release that no host wait or query has seen complete, with observed buffers.
struct Release {
  std::int64_t step = 0;
  std::string path;
  ScheduleOp op;
  Ticket ticket = 0;  ///< On compute.
};

struct ManagerState {
  ManagerState(Communicators group, CachingAllocator& allocator, StreamRef compute_stream,
               const ParameterOptions& with);

  Communicators communicators;
  CachingAllocator& memory;
  StreamRef compute;
  Stream gather_stream, reduce_stream;  ///< With one communicator for both, the second stays idle.
  StreamRef gather, reduce;
  ParameterOptions options;
  int rank, world;
  int shard_rank, shard_ranks;  ///< This rank's place in its shard group.
  DType gathered;               ///< Of leases' parameters: f32 where nothing is gathered.

  std::vector<std::unique_ptr<UnitState>> units;
  std::map<std::string, PathState> paths;
  std::shared_ptr<const SchedulePolicy> policy;
  Buffer scalars;                     ///< kernels::StepScalars.
  Buffer scratch;                     ///< What the largest all-reduce needs.
  bool prepared = false;              ///< prepare() has succeeded once: ranks wait for one another.
  bool stale = true;                  ///< Plans or their slots are to be made before the next step.
  bool reserves = false;              ///< Slots for a set and a gradient of any unit, beside no plan.
  std::size_t reserve_set_bytes = 0;  ///< Where the gradient's reserve begins.

  std::int64_t epoch = 0;           ///< Steps whose update was issued.
  std::int64_t epoch_complete = 0;  ///< Steps whose update was seen to complete.
  std::shared_ptr<const StepResult> last_result;
  Ticket applied = 0;       ///< On compute: the last update is complete.
  Ticket gather_after = 0;  ///< On compute: where a gather may start (last release or update).
  bool group_over = false;  ///< A rank has left, or the group is broken: nothing is agreed any more.
  std::shared_ptr<StepState> open_step;
  std::shared_ptr<std::int64_t> last_end_ns = std::make_shared<std::int64_t>(0);  ///< Touched by compute only.

  std::deque<Release> releases;               ///< Oldest first.
  int parameter_sets = 0, gradient_sets = 0;  ///< Live now, by issue order.
  int parameter_sets_peak = 0, gradient_sets_peak = 0;
  std::vector<SetLifetime> lifetimes;
  std::shared_ptr<std::atomic<std::uint64_t>> checksums_compared = std::make_shared<std::atomic<std::uint64_t>>(0);

  [[nodiscard]] UnitState& unit(int index) { return *units[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const UnitState& unit(int index) const { return *units[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const std::string& name(int index) const { return unit(index).layout.unit; }
  [[nodiscard]] TensorView scalars_view(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] TensorView scratch_view() const;
  [[nodiscard]] bool gathers() const noexcept { return shard_ranks > 1; }
  [[nodiscard]] bool observes() const noexcept { return options.buffers == Buffers::observed; }
  [[nodiscard]] std::size_t set_bytes(int index) const;       ///< Of a gathered set.
  [[nodiscard]] std::size_t gradient_bytes(int index) const;  ///< Of a full gradient.
  void record_lifetime(const SetLifetime& lifetime);
};

inline constexpr const char* kDefaultPath = "default";  ///< Unless declared: all units as added.

/// Plans one path, or every known path that has no plan; pure but for what they store. Throws: InvalidInput.
void plan_path(const ManagerState& state, PathState& path);
void plan_paths(ManagerState& state);
void forget_plans(ManagerState& state);
/// Allocates gradient shards, scalars and slots. Throws: OutOfMemory.
void allocate_for_steps(ManagerState& state);
/// Everything that must be equal on all ranks, a line each.
[[nodiscard]] std::string describe(const ManagerState& state);
/// Enqueues the gather of a unit's shard into `full`, whose dtype is that of the set or f32, on the gather stream.
/// `checksums`: also that of each owner's checksum of what it sends.
void gather_unit(ManagerState& state, int index, const Buffer& full, DType dtype, bool checksums = false);

}  // namespace headroom::detail
