#include "runtime/schedule/limits.hpp"

#include <algorithm>
#include <cstdint>

namespace headroom::detail {
namespace {

std::vector<ScheduleOp> of_kind(const std::vector<ScheduleOp>& ops, ScheduleOpKind kind) {
  std::vector<ScheduleOp> found;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(found), [&](const auto& op) { return op.kind == kind; });
  return found;
}

/// How many of `counted` lie before the last `kind`.
std::int64_t count_before_last(const std::vector<ScheduleOp>& ops, ScheduleOpKind counted, ScheduleOpKind kind) {
  const auto last = std::find_if(ops.rbegin(), ops.rend(), [&](const auto& op) { return op.kind == kind; });
  return std::count_if(last, ops.rend(), [&](const auto& op) { return op.kind == counted; });
}

}  // namespace

// Releases are numbered from 0 in this step, and backwards from -1 in the steps before. "While n or more are issued and
// not waited for, take the oldest" leaves release number issued - n the last one taken.
std::vector<ScheduleOp> limit_gathers(const std::vector<ScheduleOp>& ops, int limit, bool steady) {
  const std::vector<ScheduleOp> releases = of_kind(ops, ScheduleOpKind::release);
  const auto per_step = static_cast<std::int64_t>(releases.size());
  std::int64_t last_taken = -1;
  if (steady) {
    last_taken = count_before_last(ops, ScheduleOpKind::release, ScheduleOpKind::all_gather) - per_step - limit;
  }
  std::vector<ScheduleOp> limited;
  std::int64_t issued = 0;
  for (const ScheduleOp& op : ops) {
    const std::int64_t take = issued - limit;
    if (op.kind == ScheduleOpKind::all_gather && take > last_taken) {
      const std::int64_t steps_back = take < 0 ? (per_step - 1 - take) / per_step : 0;
      ScheduleOp throttle = releases[static_cast<std::size_t>(take + steps_back * per_step)];
      throttle.kind = ScheduleOpKind::throttle;
      throttle.steps_back = static_cast<int>(steps_back);
      limited.push_back(throttle);
      last_taken = take;
    }
    if (op.kind == ScheduleOpKind::release) ++issued;
    limited.push_back(op);
  }
  return limited;
}

// As above; every reduction of a step is waited for before its norm, so none carries over.
std::vector<ScheduleOp> wait_for_reductions(const std::vector<ScheduleOp>& ops, ScheduleOpKind counted,
                                            std::optional<int> limit) {
  const std::vector<ScheduleOp> reductions = of_kind(ops, counted);
  std::vector<ScheduleOp> waiting;
  std::int64_t issued = 0;
  std::int64_t last_taken = -1;
  for (const ScheduleOp& op : ops) {
    std::int64_t take = -1;
    if (op.kind == ScheduleOpKind::backward && limit) take = issued - *limit;
    if (op.kind == ScheduleOpKind::norm) take = issued - 1;
    if (take > last_taken) {
      ScheduleOp wait = reductions[static_cast<std::size_t>(take)];
      wait.kind = ScheduleOpKind::wait_reduce;
      waiting.push_back(wait);
      last_taken = take;
    }
    if (op.kind == counted) ++issued;
    waiting.push_back(op);
  }
  return waiting;
}

}  // namespace headroom::detail
