#pragma once

#include <headroom/error.hpp>
#include <headroom/schedule_op.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

/// The most that is live in a schedule's slots, in the order of its text. A set counts from all_gather to release; a
/// gradient from the unit's first backward since its last reduction to the wait_reduce that covers the next one.
/// Residents do not count: at world 1 everything; with no_shard parameters, and gradients of micro-batch 0 or, with
/// full accumulation, of all. A frozen unit has no gradient.
struct ScheduleBound {
  int parameter_sets = 0, gradient_sets = 0;
  std::size_t communication_bytes = 0;  ///< Largest live sum of both.
};

/// The operations of one step in issue order. A value: equal texts are equal schedules.
class Schedule {
 public:
  Schedule() = default;
  Schedule(std::vector<ScheduleOp> ops, PlanInput input) : ops_(std::move(ops)), input_(std::move(input)) {}

  [[nodiscard]] const std::vector<ScheduleOp>& ops() const noexcept { return ops_; }
  [[nodiscard]] const PlanInput& input() const noexcept { return input_; }
  [[nodiscard]] std::string text() const;    ///< One operation a line, as CONTRACT section 3 spells it.
  [[nodiscard]] std::uint64_t hash() const;  ///< Of the text, sizes, world, strategy, accumulation.
  [[nodiscard]] ScheduleBound bound() const;
  /// Proves that each visit's set is gathered, waited for, and released once (with no_shard: never); that each gradient
  /// is reduced, as strategy and accumulation say, once in each micro-batch or in the last, and waited for before norm.
  /// Throws: InvalidInput naming the first line that is wrong.
  void validate() const;

 private:
  std::vector<ScheduleOp> ops_;
  PlanInput input_;
};

/// How one line reads: "all_gather h.3.b@1".
[[nodiscard]] std::string to_text(const ScheduleOp& op, const PlanInput& input);

/// Where each buffer of a schedule lies in the communication region: a pure function of schedule and sizes. Two buffers
/// share bytes only where the text orders the last use of one before the first of the other, on the device.
struct SlotPlan {
  struct Slot {
    enum class Use : std::uint8_t { parameters, gradient };
    Use use = Use::parameters;
    int unit = -1;
    std::size_t first_op = 0, last_op = 0;  ///< Indices into Schedule::ops: allocated at first, freed at last.
    std::size_t offset_bytes = 0, bytes = 0;
  };
  std::vector<Slot> slots;  ///< Sorted by first_op.
  std::size_t high_water_bytes = 0;
};

[[nodiscard]] SlotPlan pack_slots(const Schedule& schedule, std::size_t alignment_bytes);

/// Plans the operations of a step. Pure: the same input gives the same schedule on every rank. Users derive their own.
class SchedulePolicy {
 public:
  virtual ~SchedulePolicy() = default;
  [[nodiscard]] virtual Schedule plan(const PlanInput& input) const = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
};

enum class BackwardPrefetch : std::uint8_t { none, pre, post };

struct PrefetchOptions {
  int forward_prefetch = 0;                       ///< Visits gathered ahead in forward.
  std::optional<int> limit_all_gathers = {};      ///< n >= 1; none: off.
  std::optional<int> limit_reduce_scatters = {};  ///< m >= 1; none: off.
  enum class Keep : std::uint8_t { none, last, all, named } keep = Keep::none;
  std::vector<std::string> keep_units = {};  ///< With Keep::named.
};

/// Headroom's own policies: NONE, BACKWARD_PRE, BACKWARD_POST. Throws (in plan): InvalidInput on a unit that is not
/// there.
[[nodiscard]] std::shared_ptr<const SchedulePolicy> prefetch_policy(BackwardPrefetch backward,
                                                                    PrefetchOptions options = {});
[[nodiscard]] inline auto backward_pre(PrefetchOptions options = {}) {
  return prefetch_policy(BackwardPrefetch::pre, std::move(options));
}
[[nodiscard]] inline auto backward_post(PrefetchOptions options = {}) {
  return prefetch_policy(BackwardPrefetch::post, std::move(options));
}

}  // namespace headroom
