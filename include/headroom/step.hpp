#pragma once

#include <headroom/error.hpp>
#include <headroom/optimizer.hpp>
#include <headroom/schedule.hpp>
#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headroom {

class ParameterManager;

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
  /// Order: what the schedule has after the visit (release, prefetch, reduction) is enqueued now. With observed
  /// buffers: may block, and throw, as a visit.
  void finish();

 private:
  friend class StepTransaction;
  UnitLease(std::shared_ptr<detail::StepState> step, std::size_t visit, int unit, Phase phase) noexcept
      : step_(std::move(step)), visit_(visit), unit_(unit), phase_(phase) {}
  std::shared_ptr<detail::StepState> step_;
  std::size_t visit_ = 0;  ///< Which visit of the step: a lease is good for one.
  int unit_ = -1;
  Phase phase_ = Phase::forward;
};

/// What a committed step gave. The numbers are futures: reading one blocks until the device has come that far.
/// Throws, then: the error of the device's work; DeviceError where the step's update was not made because of one.
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
  [[nodiscard]] const detail::StepResult& wait() const;
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

  /// The unit's next visit. Order: enqueues what the schedule has before it. Blocks only without a plan, until all
  /// ranks have agreed, and with observed buffers, where a throttle line waits. Throws, with observed buffers:
  /// OutOfMemory.
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

}  // namespace headroom
