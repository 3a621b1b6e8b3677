#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "runtime/schedule/visits.hpp"

namespace headroom {
namespace {

using detail::index_of;
using detail::Visit;

/// Runs a text line by line and refuses the first that is wrong.
class Validator {
 public:
  explicit Validator(const Schedule& schedule)
      : ops_(schedule.ops()), input_(schedule.input()), visits_(detail::visits_of(input_, Phase::forward)) {
    const std::vector<Visit> backward = detail::visits_of(input_, Phase::backward);
    visits_.insert(visits_.end(), backward.begin(), backward.end());
    units_.resize(input_.units.size());
    number_releases();
  }

  void run() {
    for (line_ = 0; line_ < ops_.size(); ++line_) check(ops_[line_]);
    if (ended_ < kEnding.size()) throw InvalidInput("schedule: the text ends before 'apply'");
  }

 private:
  struct Unit {
    bool gathered = false, waited = false, has_gradient = false, reduced = false;
    std::int64_t waited_visit = -1;    ///< Counted over the step.
    std::int64_t computed_visit = -1;  ///< The last one computed from the gathered set, or -1.
  };
  struct Release {
    int micro, unit;
    Phase phase;
    int repeat;
    std::int64_t number;  ///< In the text.
    [[nodiscard]] auto visit() const { return std::tie(micro, unit, phase, repeat); }
  };
  static constexpr std::array kEnding = {ScheduleOpKind::norm, ScheduleOpKind::vote, ScheduleOpKind::apply};

  /// Sorts the releases by what they name: a text has up to one throttle a gather, and each looks one up.
  void number_releases() {
    for (const ScheduleOp& op : ops_) {
      if (op.kind != ScheduleOpKind::release) continue;
      releases_.push_back({op.micro, op.unit, op.phase, op.repeat, static_cast<std::int64_t>(releases_.size())});
    }
    std::stable_sort(releases_.begin(), releases_.end(),
                     [](const Release& a, const Release& b) { return a.visit() < b.visit(); });
  }

  void check(const ScheduleOp& op) {
    const std::string text = to_text(op, input_);  // Refuses unknown kinds and units.
    require(unreplicated_ < 0 || op.kind == ScheduleOpKind::all_reduce,
            "the all_reduce of the reduce_scatter before it is missing");
    if (ended_ > 0 || std::find(kEnding.begin(), kEnding.end(), op.kind) != kEnding.end()) return ending(op);
    if (op.kind == ScheduleOpKind::micro) return micro(op);
    require(micro_ >= 0, "comes before the first micro-batch");
    if (op.kind == ScheduleOpKind::forward || op.kind == ScheduleOpKind::backward) return compute(op);
    require(input_.world > 1, "world 1 gathers and reduces nothing");
    if (op.kind == ScheduleOpKind::reduce_scatter) return reduce_scatter(op);
    if (op.kind == ScheduleOpKind::all_reduce) return all_reduce(op);
    if (op.kind == ScheduleOpKind::wait_reduce) return wait_reduce(op);
    require(shards(), "no_shard gathers and releases nothing");
    if (op.kind == ScheduleOpKind::throttle) return throttle(op);
    if (op.kind == ScheduleOpKind::all_gather) return all_gather(op);
    if (op.kind == ScheduleOpKind::wait_gather) return wait_gather(op);
    release(op);
  }

  void micro(const ScheduleOp& op) {
    end_micro_batch();
    ++micro_;
    require(op.micro == micro_ && micro_ < input_.micro_batches,
            "expected micro-batch " + std::to_string(micro_) + " of " + std::to_string(input_.micro_batches));
    done_ = 0;
    for (Unit& unit : units_) unit.reduced = false;
  }

  void end_micro_batch() {
    if (micro_ < 0) return;
    require(done_ == visits_.size(), "the micro-batch before has " + std::to_string(visits_.size() - done_) +
                                         " visits left, the next of unit " + name(done_));
    for (std::size_t u = 0; u < units_.size(); ++u) {
      require(!units_[u].has_gradient || !detail::reduces_in(input_, micro_),
              "the gradient of " + input_.units[u].name + " is not reduced");
    }
  }

  void ending(const ScheduleOp& op) {
    require(ended_ < kEnding.size() && op.kind == kEnding[ended_], "a step ends in norm, vote, apply");
    if (ended_++ > 0) return;
    end_micro_batch();
    require(micro_ + 1 == input_.micro_batches, "only " + std::to_string(micro_ + 1) + " of " +
                                                    std::to_string(input_.micro_batches) + " micro-batches ran");
    for (std::size_t u = 0; u < units_.size(); ++u) {
      require(!units_[u].gathered, "the parameters of " + input_.units[u].name + " are not released");
    }
    require(waited_ == reductions_.size(), "a reduction has not been waited for");
  }

  void compute(const ScheduleOp& op) {
    const Phase phase = op.kind == ScheduleOpKind::forward ? Phase::forward : Phase::backward;
    require(done_ < visits_.size(), "the path of the micro-batch is complete");
    require(visits_[done_].unit == op.unit && visits_[done_].phase == phase,
            std::string("the path's next visit is the ") +
                (visits_[done_].phase == Phase::forward ? "forward" : "backward") + " of " + name(done_));
    if (input_.world > 1) {
      Unit& unit = units_[index_of(op.unit)];
      require(!shards() || (unit.gathered && unit.waited), "its parameters have not been gathered and waited for");
      unit.computed_visit = number(done_);
      if (phase == Phase::backward) unit.has_gradient = detail::unit_at(input_, op.unit).gradient_bytes > 0;
    }
    ++done_;
  }

  void all_gather(const ScheduleOp& op) {
    Unit& unit = units_[index_of(op.unit)];
    require(!unit.gathered, "it is still gathered");
    require_next_visit(op);
    unit.gathered = true;
    unit.waited = false;
    unit.computed_visit = -1;
  }

  void wait_gather(const ScheduleOp& op) {
    Unit& unit = units_[index_of(op.unit)];
    require(unit.gathered, "it is not gathered");
    const std::int64_t visit = require_next_visit(op);
    require(unit.waited_visit != visit, "it has been waited for");
    unit.waited_visit = visit;
    unit.waited = true;
  }

  void release(const ScheduleOp& op) {
    Unit& unit = units_[index_of(op.unit)];
    require(unit.gathered, "it is not gathered");
    require(unit.computed_visit >= 0, "it has not been used since it was gathered");
    const std::int64_t visit = unit.computed_visit - number(0);
    require(visit >= 0 && op.micro == micro_ && matches(op, visits_[static_cast<std::size_t>(visit)]),
            "it is not the unit's last visit");
    unit.gathered = false;
    ++issued_;
  }

  void throttle(const ScheduleOp& op) {
    const Release named{op.micro, op.unit, op.phase, op.repeat, 0};
    const auto found = std::lower_bound(releases_.begin(), releases_.end(), named,
                                        [](const Release& a, const Release& b) { return a.visit() < b.visit(); });
    require(found != releases_.end() && found->visit() == named.visit(), "there is no such release");
    require(op.steps_back >= 0 && (op.steps_back == 0 || !input_.first_step), "a first step has no step before it");
    const auto count = static_cast<std::int64_t>(releases_.size());
    const std::int64_t release = found->number - op.steps_back * count;
    require(release < issued_, "the release has not been issued");
    require(!throttled_ || release > last_throttle_, "a later release has been waited for");
    throttled_ = true;
    last_throttle_ = release;
  }

  void reduce_scatter(const ScheduleOp& op) {
    require(shards(), "with no_shard a gradient is reduced by all_reduce");
    reduce(op);
    if (input_.strategy == ShardStrategy::hybrid && in_last_micro_batch()) unreplicated_ = op.unit;
  }

  void all_reduce(const ScheduleOp& op) {
    if (!shards()) return reduce(op);
    require(input_.strategy == ShardStrategy::hybrid, "a sharded unit's gradient is reduced by reduce_scatter");
    require(op.micro == micro_, "it is of another micro-batch");
    require(in_last_micro_batch(), "hybrid all-reduces in the last micro-batch only");
    require(unreplicated_ == op.unit, "it does not follow the unit's reduce_scatter");
    unreplicated_ = -1;
  }

  void reduce(const ScheduleOp& op) {
    Unit& unit = units_[index_of(op.unit)];
    require(op.micro == micro_, "it is of another micro-batch");
    require(detail::unit_at(input_, op.unit).gradient_bytes > 0, "the unit is frozen, it has no gradient");
    require(detail::reduces_in(input_, micro_), "full accumulation reduces in the last micro-batch only");
    require(!unit.reduced, "it has been reduced in this micro-batch");
    require(unit.has_gradient, "it has no gradient yet");
    require(next_visit(op.unit) == visits_.size(), "a visit of the unit is still to come in this micro-batch");
    unit.has_gradient = false;
    unit.reduced = true;
    reductions_.push_back(op);
  }

  void wait_reduce(const ScheduleOp& op) {
    const auto first = reductions_.begin() + static_cast<std::ptrdiff_t>(waited_);
    const auto found = std::find_if(first, reductions_.end(),
                                    [&](const auto& each) { return each.unit == op.unit && each.micro == op.micro; });
    require(found != reductions_.end(),
            "no reduction of it in micro-batch " + std::to_string(op.micro) + " is outstanding");
    waited_ = static_cast<std::size_t>(found - reductions_.begin()) + 1;
  }

  [[nodiscard]] bool shards() const { return input_.strategy != ShardStrategy::no_shard; }
  [[nodiscard]] bool in_last_micro_batch() const { return micro_ + 1 == input_.micro_batches; }

  std::int64_t require_next_visit(const ScheduleOp& op) {
    const std::size_t visit = next_visit(op.unit);
    require(visit < visits_.size() && op.micro == micro_ && matches(op, visits_[visit]),
            "it is not the unit's next visit in this micro-batch");
    return number(visit);
  }

  [[nodiscard]] std::size_t next_visit(int unit) const {
    const auto from = visits_.begin() + static_cast<std::ptrdiff_t>(done_);
    const auto found = std::find_if(from, visits_.end(), [&](const Visit& each) { return each.unit == unit; });
    return static_cast<std::size_t>(found - visits_.begin());
  }

  static bool matches(const ScheduleOp& op, const Visit& visit) {
    return op.unit == visit.unit && op.phase == visit.phase && op.repeat == visit.repeat;
  }

  /// The visit's number, counted over the step.
  [[nodiscard]] std::int64_t number(std::size_t visit) const {
    return static_cast<std::int64_t>(visits_.size()) * micro_ + static_cast<std::int64_t>(visit);
  }

  [[nodiscard]] std::string name(std::size_t visit) const {
    return visit < visits_.size() ? detail::unit_at(input_, visits_[visit].unit).name : std::string("none");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw InvalidInput("schedule line " + std::to_string(line_ + 1) + " '" + to_text(ops_[line_], input_) +
                       "': " + why);
  }

  void require(bool holds, const std::string& why) const {
    if (!holds) fail(why);
  }

  const std::vector<ScheduleOp>& ops_;
  const PlanInput& input_;
  std::vector<Visit> visits_;      ///< Of a micro-batch.
  std::vector<Release> releases_;  ///< Sorted by visit().
  std::vector<ScheduleOp> reductions_;
  std::vector<Unit> units_;
  std::size_t line_ = 0, done_ = 0, waited_ = 0, ended_ = 0;
  int micro_ = -1;
  int unreplicated_ = -1;  ///< With hybrid: the unit whose all_reduce must follow.
  bool throttled_ = false;
  std::int64_t issued_ = 0, last_throttle_ = 0;
};

}  // namespace

void Schedule::validate() const {
  detail::check_input(input_);
  Validator(*this).run();
}

}  // namespace headroom
