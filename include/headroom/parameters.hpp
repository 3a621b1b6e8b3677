#pragma once

#include <headroom/communicator.hpp>
#include <headroom/layout.hpp>
#include <headroom/optimizer.hpp>
#include <headroom/schedule.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

namespace detail {
struct StepState;
struct StepResult;
}  // namespace detail

/// A unit's gathered parameters, borrowed for one visit. finish() hands them back; the destructor without it abandons
/// the visit (the step can then only be aborted). Views are valid for work enqueued on compute until finish().
class UnitLease {
 public:
  UnitLease(UnitLease&&) noexcept = default;
  UnitLease& operator=(UnitLease&&) noexcept = default;
  ~UnitLease() = default;

  [[nodiscard]] int unit() const noexcept { return unit_; }
  /// Shapes: as specified. By index, or by name (Throws: InvalidInput).
  [[nodiscard]] TensorView parameter(int index) const;
  [[nodiscard]] TensorView parameter(std::string_view name) const;
  /// Backward leases only. What other visits and micro-batches left is in it: add to it, never overwrite it.
  [[nodiscard]] TensorView gradient(int index) const;
  [[nodiscard]] TensorView gradient(std::string_view name) const;
  /// Order: what the schedule has after the visit (release, prefetch, reduction) is enqueued now.
  void finish();

 private:
  friend class StepTransaction;
  UnitLease(std::shared_ptr<detail::StepState> step, int unit, Phase phase) noexcept
      : step_(std::move(step)), unit_(unit), phase_(phase) {}
  std::shared_ptr<detail::StepState> step_;
  int unit_ = -1;
  Phase phase_ = Phase::forward;
};

/// What a committed step gave. The numbers are futures: reading one blocks until the device has come that far.
class StepReport {
 public:
  [[nodiscard]] std::int64_t step() const noexcept;
  [[nodiscard]] double loss() const;            ///< Summed over ranks, as added to StepTransaction::loss.
  [[nodiscard]] double gradient_norm() const;   ///< Before clipping.
  [[nodiscard]] bool skipped() const;           ///< Gradients were not finite: nothing was updated.
  [[nodiscard]] std::int64_t begin_ns() const;  ///< The later of begin_step and the end of the step before.
  [[nodiscard]] std::int64_t end_ns() const;    ///< When apply was complete.

 private:
  friend class StepTransaction;
  StepReport(std::shared_ptr<const detail::StepResult> result, StreamRef compute) noexcept
      : result_(std::move(result)), compute_(compute) {}
  std::shared_ptr<const detail::StepResult> result_;
  StreamRef compute_;
};

/// One step of all ranks. Parameters change only in commit, on all ranks or on none. A visit that the path does not
/// have next, here or on a peer, ends in StepAborted with one text on every rank; so does commit after any rank's
/// fault. A transaction that goes out of scope is dropped: drained and voted by the next begin_step, or when the
/// manager ends.
class StepTransaction {
 public:
  StepTransaction(StepTransaction&&) noexcept = default;
  StepTransaction& operator=(StepTransaction&&) noexcept = default;
  ~StepTransaction();

  /// The unit's next visit. Order: enqueues what the schedule has before it; blocks only on a throttle line.
  [[nodiscard]] UnitLease forward(int unit);
  [[nodiscard]] UnitLease backward(int unit);
  /// f64 [1], on the device, zero at begin_step: add this rank's share of the step's loss, on compute.
  [[nodiscard]] TensorView loss() const;
  /// Order: norm, then the vote (blocks until all ranks have voted), then the update, enqueued.
  StepReport commit(AdamW& optimizer);
  /// Gives the step up for a reason of the caller's: drains, votes, and throws StepAborted on every rank.
  [[noreturn]] void abort(Fault fault, const std::string& reason);

 private:
  friend class ParameterManager;
  [[nodiscard]] UnitLease visit(int unit, Phase phase);
  void require_open() const;  ///< Throws: std::logic_error.
  explicit StepTransaction(std::shared_ptr<detail::StepState> step) noexcept : step_(std::move(step)) {}
  std::shared_ptr<detail::StepState> step_;
};

struct StepOptions {
  std::string path = "default";
  std::uint64_t data_cursor = 0;  ///< Global sample count; must be equal on all ranks.
};

struct ParameterOptions {
  std::uint64_t seed = 1;
  int micro_batches = 1;
};

/// A full parameter set or full gradient as it lived: between a ticket's start and another's completion.
struct SetLifetime {
  bool gradient = false;
  int unit = -1;
  StreamId begin_stream = 0, end_stream = 0;
  Ticket begin = 0, end = 0;
};

/// Owns the sharded parameters of one model on one rank and runs its schedule. Not thread-safe: one issuing thread.
/// `memory` and the stream must outlive it. Its end answers the peers' next agreement with "left".
class ParameterManager {
 public:
  ParameterManager(Communicators communicators, CachingAllocator& memory, StreamRef compute,
                   const ParameterOptions& options = {});
  ~ParameterManager();
  ParameterManager(const ParameterManager&) = delete;
  ParameterManager& operator=(const ParameterManager&) = delete;

  /// Allocates and initialises this rank's shard. Throws: OutOfMemory; InvalidInput; std::logic_error after prepare().
  int add_unit(std::string_view name, std::vector<ParameterSpec> parameters);
  /// The order of visits; "default", unless declared: all units as added, and backward in reverse. Throws:
  /// InvalidInput.
  void declare_path(const std::string& name, std::vector<int> forward, std::vector<int> backward);
  /// Takes effect at the next prepare() or begin_step().
  void set_policy(std::shared_ptr<const SchedulePolicy> policy);
  /// Plans every path, agrees with all ranks on parameters, schedules and options, and takes all the memory that a
  /// step's collectives need. begin_step does it if it was not done. Throws, on all ranks: InvalidInput, OutOfMemory,
  /// CollectiveMismatch naming the first difference.
  void prepare();

  /// Agrees with all ranks on {epoch, path} first. Throws: StepAborted where a peer left, or for a step dropped before.
  [[nodiscard]] StepTransaction begin_step(const StepOptions& options = {});
  /// Ends training: every rank must come here. Throws, on all ranks, StepAborted where one does not.
  void finish();

  [[nodiscard]] int unit_count() const noexcept;
  [[nodiscard]] const FlatLayout& layout(int unit) const;
  [[nodiscard]] std::int64_t parameter_count() const noexcept;
  [[nodiscard]] const Schedule& schedule(const std::string& path = "default") const;  ///< The steady one.
  [[nodiscard]] std::int64_t epoch() const noexcept;                                  ///< Steps committed.

  /// Overwrites one logical parameter (this rank keeps its part). Blocks. Shapes: values [numel].
  void write(int unit, int parameter, std::span<const float> values);
  /// Calls `visit(parameter, values)` for each logical parameter of the unit, gathered through the step's own slots.
  /// Collective, between steps; blocks. `visit` may be empty where this rank needs nothing.
  void read(int unit, const std::function<void(int, std::span<const float>)>& visit);
  /// CRC32C of all logical parameters in registration order, f32 little-endian. Collective; blocks; equal on all ranks.
  [[nodiscard]] std::uint32_t crc32c();

  /// Live full sets as measured, of the steps since the last call: by issue order here, by device time from a trace.
  [[nodiscard]] int parameter_sets_peak() const noexcept;
  [[nodiscard]] int gradient_sets_peak() const noexcept;
  [[nodiscard]] std::vector<SetLifetime> take_lifetimes();

 private:
  friend class AdamW;
  std::shared_ptr<detail::ManagerState> state_;
};

/// The most full sets that were live at one instant of device time, from their lifetimes and the trace that ran them.
[[nodiscard]] int live_sets_peak(std::span<const SetLifetime> lifetimes, bool gradients, const Trace& trace);

}  // namespace headroom
