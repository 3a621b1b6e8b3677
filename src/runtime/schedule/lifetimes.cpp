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
    std::size_t gradient, buffer;  ///< Indices into lifetimes_; buffer may be kNone.
  };

  void read(std::size_t line) {
    const ScheduleOp& op = ops_[line];
    const std::size_t u = index_of(op.unit);
    switch (op.kind) {
      case ScheduleOpKind::all_gather:
        // The gather stream waits for the releases before it in the text, and so for what compute did before those.
        parameters_[u] = begin(Use::parameters, line, after_release_, unit_at(input_, op.unit).parameter_bytes);
        break;
      case ScheduleOpKind::release:
        lifetimes_[parameters_[u]].freed_op = line;
        after_release_ = line + 1;
        break;
      case ScheduleOpKind::backward:
        if (gradients_[u] == kNone) {
          gradients_[u] = begin(Use::gradient, line, line, unit_at(input_, op.unit).gradient_bytes);
        }
        break;
      case ScheduleOpKind::reduce_scatter: reduce(op, line); break;
      case ScheduleOpKind::wait_reduce: wait(op, line); break;
      default: break;
    }
  }

  // The first micro-batch reduces straight into the gradient shard; later ones reduce into a buffer that is then added.
  void reduce(const ScheduleOp& op, std::size_t line) {
    const std::size_t u = index_of(op.unit);
    const std::size_t buffer =
        op.micro > 0 ? begin(Use::reduction, line, line, unit_at(input_, op.unit).shard_bytes) : kNone;
    outstanding_.push_back({op.unit, op.micro, gradients_[u], buffer});
    gradients_[u] = kNone;
  }

  void wait(const ScheduleOp& op, std::size_t line) {
    bool covered = false;
    while (!covered) {
      const Reduction& reduction = outstanding_.at(waited_++);
      lifetimes_[reduction.gradient].freed_op = line;
      if (reduction.buffer != kNone) lifetimes_[reduction.buffer].freed_op = line;
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
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const Schedule& schedule) {
  schedule.validate();
  if (schedule.input().world == 1) return {};
  return Walk(schedule).run();
}

}  // namespace headroom::detail
