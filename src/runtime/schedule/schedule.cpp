#include <headroom/schedule.hpp>

#include "runtime/schedule/visits.hpp"

namespace headroom {
namespace {

const char* word(ScheduleOpKind kind) {
  switch (kind) {
    case ScheduleOpKind::micro: return "micro";
    case ScheduleOpKind::throttle: return "throttle";
    case ScheduleOpKind::all_gather: return "all_gather";
    case ScheduleOpKind::wait_gather: return "wait_gather";
    case ScheduleOpKind::forward: return "forward";
    case ScheduleOpKind::backward: return "backward";
    case ScheduleOpKind::release: return "release";
    case ScheduleOpKind::wait_reduce: return "wait_reduce";
    case ScheduleOpKind::reduce_scatter: return "reduce_scatter";
    case ScheduleOpKind::all_reduce: return "all_reduce";
    case ScheduleOpKind::norm: return "norm";
    case ScheduleOpKind::vote: return "vote";
    case ScheduleOpKind::apply: return "apply";
  }
  throw InvalidInput("schedule: operation kind " + std::to_string(static_cast<int>(kind)) + " does not exist");
}

bool names_visit(ScheduleOpKind kind) {
  return kind == ScheduleOpKind::throttle || kind == ScheduleOpKind::all_gather ||
         kind == ScheduleOpKind::wait_gather || kind == ScheduleOpKind::release;
}

bool names_unit(ScheduleOpKind kind) {
  return kind == ScheduleOpKind::forward || kind == ScheduleOpKind::backward || kind == ScheduleOpKind::wait_reduce ||
         kind == ScheduleOpKind::reduce_scatter || kind == ScheduleOpKind::all_reduce;
}

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv: the same on every machine.
class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
  }
  void add(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(value >> shift));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

std::string to_text(const ScheduleOp& op, const PlanInput& input) {
  std::string line = word(op.kind);
  if (op.kind == ScheduleOpKind::micro) return line.append(" ").append(std::to_string(op.micro));
  if (!names_visit(op.kind) && !names_unit(op.kind)) return line;
  if (op.unit < 0 || detail::index_of(op.unit) >= input.units.size()) {
    throw InvalidInput("schedule: '" + line + "' names unit " + std::to_string(op.unit) + ": expected 0 to " +
                       std::to_string(input.units.size()) + " - 1");
  }
  line.append(" ").append(detail::unit_at(input, op.unit).name);
  if (!names_visit(op.kind)) return line;
  line += op.phase == Phase::forward ? ".f" : ".b";
  if (op.repeat > 0) line.append("@").append(std::to_string(op.repeat));
  if (op.steps_back > 0) line.append(static_cast<std::size_t>(op.steps_back), '\'');
  return line;
}

std::string Schedule::text() const {
  std::string text;
  for (const ScheduleOp& op : ops_) text.append(to_text(op, input_)).append("\n");
  return text;
}

std::uint64_t Schedule::hash() const {
  Fnv1a hash;
  hash.add(text());
  hash.add(static_cast<std::uint64_t>(input_.world));
  hash.add(static_cast<std::uint64_t>(input_.strategy));
  hash.add(static_cast<std::uint64_t>(input_.accumulation));
  for (const ScheduleUnit& unit : input_.units) {
    hash.add(unit.name);
    hash.add(unit.parameter_bytes);
    hash.add(unit.gradient_bytes);
  }
  return hash.value();
}

}  // namespace headroom
