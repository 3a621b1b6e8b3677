#include "runtime/schedule/lifetimes.hpp"

#include "runtime/schedule/visits.hpp"

namespace headroom::detail {
namespace {

using Use = SlotPlan::Slot::Use;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class Walk {
 public:
  explicit Walk(const Schedule& schedule)
      : ops_(schedule.ops()),
        input_(schedule.input()),
        parameters_(input_.units.size(), kNone),
        gradients_(input_.units.size(), kNone) {}

  std::vector<Lifetime> run() {
    for (std::size_t line = 0; line < ops_.size(); ++line) read(line);
    return std::move(lifetimes_);
  }

 private:
  /// What a wait_reduce sets free.
  struct Reduction {
    int unit, micro;
    std::size_t gradient;  ///< Index into lifetimes_, or kNone.
  };

  void read(std::size_t line) {
    const ScheduleOp& op = ops_[line];
    const std::size_t u = index_of(op.unit);
    if (op.kind == reduction_kind(input_)) return reduce(op);
    switch (op.kind) {
      case ScheduleOpKind::micro: micro_ = op.micro; break;
      case ScheduleOpKind::all_gather:
        // The gather stream waits for the releases before it in the text, and so for what compute did before those.
        parameters_[u] = begin(Use::parameters, line, after_release_, unit_at(input_, op.unit).parameter_bytes);
        break;
      case ScheduleOpKind::release:
        lifetimes_[parameters_[u]].freed_op = line;
        after_release_ = line + 1;
        break;
      case ScheduleOpKind::backward:
        if (gradients_[u] == kNone && gradient_has_slot(op.unit)) {
          gradients_[u] = begin(Use::gradient, line, line, unit_at(input_, op.unit).gradient_bytes);
        }
        break;
      case ScheduleOpKind::wait_reduce: wait(op, line); break;
      default: break;
    }
  }

  /// Not where it is resident, or where there is none.
  [[nodiscard]] bool gradient_has_slot(int unit) const {
    if (unit_at(input_, unit).gradient_bytes == 0) return false;
    if (input_.strategy != ShardStrategy::no_shard) return true;
    return input_.accumulation == Accumulation::sharded && micro_ > 0;
  }

  void reduce(const ScheduleOp& op) {
    const std::size_t u = index_of(op.unit);
    outstanding_.push_back({op.unit, op.micro, gradients_[u]});
    gradients_[u] = kNone;
  }

  void wait(const ScheduleOp& op, std::size_t line) {
    bool covered = false;
    while (!covered) {
      const Reduction& reduction = outstanding_.at(waited_++);
      if (reduction.gradient != kNone) lifetimes_[reduction.gradient].freed_op = line;
      covered = reduction.unit == op.unit && reduction.micro == op.micro;
    }
  }

  std::size_t begin(Use use, std::size_t line, std::size_t known, std::size_t bytes) {
    lifetimes_.push_back({use, ops_[line].unit, line, 0, known, bytes});
    return lifetimes_.size() - 1;
  }

  const std::vector<ScheduleOp>& ops_;
  const PlanInput& input_;
  std::vector<std::size_t> parameters_, gradients_;  ///< Of each unit: what is live, in lifetimes_.
  std::vector<Reduction> outstanding_;
  std::size_t waited_ = 0, after_release_ = 0;
  int micro_ = 0;
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const Schedule& schedule) {
  schedule.validate();
  if (schedule.input().world == 1) return {};
  return Walk(schedule).run();
}

}  // namespace headroom::detail
