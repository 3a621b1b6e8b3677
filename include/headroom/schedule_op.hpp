#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headroom {

enum class Phase : std::uint8_t { forward, backward };

enum class ScheduleOpKind : std::uint8_t {
  micro,
  throttle,
  all_gather,
  wait_gather,
  forward,
  backward,
  release,
  wait_reduce,
  reduce_scatter,
  all_reduce,
  norm,
  vote,
  apply,
};

/// One line of a schedule. Which members mean something depends on `kind`; the others keep their defaults.
struct ScheduleOp {
  ScheduleOpKind kind = ScheduleOpKind::micro;
  int unit = -1;
  Phase phase = Phase::forward;  ///< Of the visit named by throttle, all_gather, wait_gather and release.
  int repeat = 0;                ///< 1 for the unit's second visit in that phase of the micro-batch.
  int micro = 0;                 ///< Its micro-batch; of `throttle`, `wait_reduce`: that of the release, the reduction.
  int steps_back = 0;            ///< Of `throttle`: 1 where the release was in the step before.
  friend bool operator==(const ScheduleOp&, const ScheduleOp&) = default;
};

/// What is sharded. `shard_grad_op`: gathered parameters are kept from forward to backward. `no_shard`: every rank has
/// all, gradients are all-reduced. `hybrid`: sharded inside groups of ranks, all-reduced across them.
enum class ShardStrategy : std::uint8_t { full_shard, shard_grad_op, no_shard, hybrid };

/// Where gradients live between micro-batches: reduced into the shard each time, or full until the last one.
enum class Accumulation : std::uint8_t { sharded, full };

/// What a schedule needs to know of a unit; sizes in bytes, padding included.
struct ScheduleUnit {
  std::string name;
  std::size_t parameter_bytes = 1;  ///< Gathered.
  std::size_t gradient_bytes = 1;   ///< Full gradient; 0: the unit is frozen, nothing of it is reduced.
  friend bool operator==(const ScheduleUnit&, const ScheduleUnit&) = default;
};

/// One path of a model: indices into units, in order of visit. A unit may occur several times.
struct PlanInput {
  std::vector<ScheduleUnit> units = {};
  std::vector<int> forward = {}, backward = {};
  int micro_batches = 1;
  int world = 2;  ///< 1: nothing is gathered or reduced.
  ShardStrategy strategy = ShardStrategy::full_shard;
  Accumulation accumulation = Accumulation::sharded;
  bool first_step = false;  ///< No release of a step before to throttle on.
  friend bool operator==(const PlanInput&, const PlanInput&) = default;
};

}  // namespace headroom
