#pragma once

#include <headroom/schedule.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace headroom::testing {

/// What a text orders on the device, by vector clocks over the three streams: the rules of CONTRACT section 3 and
/// nothing that the layer under test computes.
class DeviceOrder {
 public:
  explicit DeviceOrder(const Schedule& schedule) : schedule_(schedule), stamps_(schedule.ops().size()) {
    for (std::size_t line = 0; line < stamps_.size(); ++line) run(line);
  }

  /// Whether the work of line `earlier` is over before that of line `later` starts.
  [[nodiscard]] bool ordered(std::size_t earlier, std::size_t later) const {
    const Stamp& stamp = stamps_[earlier];
    return stamps_[later].after[stamp.stream] >= stamp.ticket;
  }

  /// The first thing wrong with what the device would do, or "": work on parameters that are not there, a gradient that
  /// is not reduced, or not waited for.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  enum Stream : std::size_t { compute, gather, reduce };
  using Clock = std::array<std::size_t, 3>;
  struct Stamp {
    std::size_t stream = compute, ticket = 0;
    Clock after{};
  };

  void run(std::size_t line) {
    const ScheduleOp& op = schedule_.ops()[line];
    switch (op.kind) {
      case ScheduleOpKind::all_gather:
        if (no_shard()) note(line, "gathers what is resident");
        merge(gather, at_release_);
        gathered_[op.unit] = enqueue(line, gather);
        break;
      case ScheduleOpKind::wait_gather: merge(compute, {0, gathered_[op.unit], 0}); break;
      case ScheduleOpKind::micro:
        if (!full() && any_gradient()) note(line, "leaves a gradient unreduced");
        last_micro_ = op.micro + 1 == schedule_.input().micro_batches;
        break;
      case ScheduleOpKind::reduce_scatter:
        if (no_shard()) note(line, "scatters what is not sharded");
        reduce_gradient(line);
        break;
      case ScheduleOpKind::all_reduce:
        if (no_shard()) {
          reduce_gradient(line);
          break;
        }
        if (unreplicated_.erase(op.unit) == 0) note(line, "all-reduces what was not scattered");
        reduced_[{op.unit, op.micro}] = enqueue(line, reduce);
        break;
      case ScheduleOpKind::wait_reduce:
        merge(compute, {0, 0, reduced_.count({op.unit, op.micro}) != 0 ? reduced_[{op.unit, op.micro}] : 0});
        break;
      case ScheduleOpKind::throttle:
        if (no_shard()) note(line, "waits for a release of what is resident");
        break;
      case ScheduleOpKind::release:
        if (gathered_[op.unit] == 0) note(line, "releases what is not gathered");
        gathered_[op.unit] = 0;
        at_release_ = clocks_[compute];
        break;
      case ScheduleOpKind::forward:
      case ScheduleOpKind::backward:
        enqueue(line, compute);
        if (!no_shard() && (gathered_[op.unit] == 0 || stamps_[line].after[gather] < gathered_[op.unit])) {
          note(line, "computes without its parameters");
        }
        if (op.kind == ScheduleOpKind::backward && unit_of(op).gradient_bytes > 0) gradients_[op.unit] = 1;
        break;
      case ScheduleOpKind::norm:
        enqueue(line, compute);
        if (clocks_[compute][reduce] < tickets_[reduce]) note(line, "does not wait for every reduction");
        if (any_gradient()) note(line, "leaves a gradient unreduced");
        if (!unreplicated_.empty()) note(line, "leaves replicas apart");
        for (const auto& unit : gathered_) {
          if (unit.second != 0) note(line, "leaves a unit gathered");
        }
        break;
      default: break;
    }
  }

  void reduce_gradient(std::size_t line) {
    const ScheduleOp& op = schedule_.ops()[line];
    merge(reduce, clocks_[compute]);
    reduced_[{op.unit, op.micro}] = enqueue(line, reduce);
    if (--gradients_[op.unit] < 0) note(line, "reduces a gradient that is not there");
    if (full() && !last_micro_) note(line, "reduces before the gradient is complete");
    if (schedule_.input().strategy == ShardStrategy::hybrid && last_micro_) unreplicated_.insert(op.unit);
  }

  [[nodiscard]] bool no_shard() const { return schedule_.input().strategy == ShardStrategy::no_shard; }
  [[nodiscard]] bool full() const { return schedule_.input().accumulation == Accumulation::full; }
  [[nodiscard]] bool any_gradient() const {
    return std::any_of(gradients_.begin(), gradients_.end(), [](const auto& each) { return each.second != 0; });
  }
  [[nodiscard]] const ScheduleUnit& unit_of(const ScheduleOp& op) const {
    return schedule_.input().units[static_cast<std::size_t>(op.unit)];
  }

  std::size_t enqueue(std::size_t line, Stream stream) {
    stamps_[line] = {stream, ++tickets_[stream], clocks_[stream]};
    clocks_[stream][stream] = tickets_[stream];
    return tickets_[stream];
  }

  void merge(Stream into, const Clock& from) {
    for (std::size_t i = 0; i < from.size(); ++i) clocks_[into][i] = std::max(clocks_[into][i], from[i]);
  }

  void note(std::size_t line, const std::string& what) {
    if (fault_.empty()) fault_ = to_text(schedule_.ops()[line], schedule_.input()) + " " + what;
  }

  const Schedule& schedule_;
  std::vector<Stamp> stamps_;
  std::array<Clock, 3> clocks_{};
  std::array<std::size_t, 3> tickets_{};
  Clock at_release_{};
  std::map<int, std::size_t> gathered_;  ///< Ticket of each unit's gather, 0 once released.
  std::map<int, int> gradients_;
  std::map<std::pair<int, int>, std::size_t> reduced_;
  std::set<int> unreplicated_;  ///< With hybrid: scattered in the last micro-batch, not all-reduced yet.
  bool last_micro_ = false;
  std::string fault_;
};

}  // namespace headroom::testing
