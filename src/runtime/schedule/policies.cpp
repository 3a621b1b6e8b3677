#include <headroom/schedule.hpp>

#include <algorithm>

#include "runtime/schedule/limits.hpp"
#include "runtime/schedule/visits.hpp"

namespace headroom {
namespace {

using detail::index_of;
using detail::Visit;
using Keep = PrefetchOptions::Keep;

constexpr int kMostOutstanding = 1'000'000;  // The marks of a steady text's throttles are as many.

/// Writes the lines of one step, but for the throttles and the waits for reductions.
class Planner {
 public:
  Planner(const PlanInput& input, BackwardPrefetch prefetch, int window, std::vector<char> kept)
      : input_(input),
        forward_(detail::visits_of(input, Phase::forward)),
        backward_(detail::visits_of(input, Phase::backward)),
        prefetch_(prefetch),
        window_(std::min(static_cast<std::size_t>(window), input.forward.size())),
        gathers_(input.world > 1 && input.strategy != ShardStrategy::no_shard),
        kept_(std::move(kept)),
        gathered_(input.units.size(), 0) {}

  std::vector<ScheduleOp> step() {
    for (micro_ = 0; micro_ < input_.micro_batches; ++micro_) {
      ops_.push_back({.kind = ScheduleOpKind::micro, .micro = micro_});
      for (std::size_t i = 0; i < forward_.size(); ++i) forward(i);
      for (std::size_t i = 0; i < backward_.size(); ++i) backward(i);
    }
    for (const auto kind : {ScheduleOpKind::norm, ScheduleOpKind::vote, ScheduleOpKind::apply}) {
      ops_.push_back({.kind = kind});
    }
    return std::move(ops_);
  }

 private:
  void forward(std::size_t i) {
    const Visit& visit = forward_[i];
    gather(forward_, i);
    communicate(ScheduleOpKind::wait_gather, visit);
    for (std::size_t next = i + 1; next <= i + window_; ++next) gather(forward_, next);
    compute(ScheduleOpKind::forward, visit);
    if (!kept(visit) && !visited_again(forward_, i, window_)) release(visit);
  }

  void backward(std::size_t i) {
    const Visit& visit = backward_[i];
    const std::size_t window = prefetch_ == BackwardPrefetch::none ? 0 : 1;
    gather(backward_, i);
    if (!kept(visit)) communicate(ScheduleOpKind::wait_gather, visit);
    if (prefetch_ == BackwardPrefetch::pre) gather(backward_, i + 1);
    compute(ScheduleOpKind::backward, visit);
    // A kept unit is not gathered in backward, so it stays until its last visit there.
    if (kept(visit) ? visit.last : !visited_again(backward_, i, window)) release(visit);
    if (prefetch_ == BackwardPrefetch::post) gather(backward_, i + 1);
    if (visit.last) reduce(visit.unit);
  }

  void reduce(int unit) {
    const bool frozen = detail::unit_at(input_, unit).gradient_bytes == 0;
    if (input_.world == 1 || frozen || !detail::reduces_in(input_, micro_)) return;
    ops_.push_back({.kind = detail::reduction_kind(input_), .unit = unit, .micro = micro_});
    if (input_.strategy == ShardStrategy::hybrid && micro_ + 1 == input_.micro_batches) {
      ops_.push_back({.kind = ScheduleOpKind::all_reduce, .unit = unit, .micro = micro_});
    }
  }

  void gather(const std::vector<Visit>& visits, std::size_t i) {
    if (i >= visits.size() || gathered_[index_of(visits[i].unit)] != 0) return;
    gathered_[index_of(visits[i].unit)] = 1;
    communicate(ScheduleOpKind::all_gather, visits[i]);
  }

  void release(const Visit& visit) {
    gathered_[index_of(visit.unit)] = 0;
    communicate(ScheduleOpKind::release, visit);
  }

  void communicate(ScheduleOpKind kind, const Visit& visit) {
    if (gathers_) ops_.push_back({kind, visit.unit, visit.phase, visit.repeat, micro_, 0});
  }

  void compute(ScheduleOpKind kind, const Visit& visit) {
    ops_.push_back({.kind = kind, .unit = visit.unit, .repeat = visit.repeat, .micro = micro_});
  }

  [[nodiscard]] bool kept(const Visit& visit) const { return kept_[index_of(visit.unit)] != 0; }

  [[nodiscard]] static bool visited_again(const std::vector<Visit>& visits, std::size_t i, std::size_t window) {
    for (std::size_t next = i + 1; next <= i + window && next < visits.size(); ++next) {
      if (visits[next].unit == visits[i].unit) return true;
    }
    return false;
  }

  const PlanInput& input_;
  std::vector<Visit> forward_, backward_;
  BackwardPrefetch prefetch_;
  std::size_t window_;
  bool gathers_;
  std::vector<char> kept_, gathered_;
  int micro_ = 0;
  std::vector<ScheduleOp> ops_;
};

std::vector<char> named_units(const PlanInput& input, const std::vector<std::string>& names) {
  std::vector<char> named(input.units.size(), 0);
  for (const std::string& name : names) {
    const auto unit =
        std::find_if(input.units.begin(), input.units.end(), [&](const auto& each) { return each.name == name; });
    if (unit == input.units.end()) {
      std::string known;
      for (const ScheduleUnit& each : input.units) known += (known.empty() ? "" : ", ") + each.name;
      throw InvalidInput("keep after forward: there is no unit '" + name + "': expected one of " + known);
    }
    named[static_cast<std::size_t>(unit - input.units.begin())] = 1;
  }
  return named;
}

/// Which units stay gathered from forward to backward: those asked for that are visited in both.
std::vector<char> kept_units(const PlanInput& input, const PrefetchOptions& options) {
  const std::size_t count = input.units.size();
  std::vector<char> kept(count, options.keep == Keep::all ? 1 : 0);
  if (options.keep == Keep::named) kept = named_units(input, options.keep_units);
  if (input.strategy == ShardStrategy::shard_grad_op) kept.assign(count, 1);
  const auto visits = [](const std::vector<int>& path, int unit) { return std::count(path.begin(), path.end(), unit); };
  if (options.keep == Keep::last) {
    const auto last = std::find_if(input.forward.rbegin(), input.forward.rend(),
                                   [&](int unit) { return visits(input.forward, unit) == 1; });
    if (last != input.forward.rend()) kept[index_of(*last)] = 1;
  }
  for (int unit = 0; index_of(unit) < count; ++unit) {
    if (visits(input.forward, unit) == 0 || visits(input.backward, unit) == 0) kept[index_of(unit)] = 0;
  }
  return kept;
}

class PrefetchPolicy final : public SchedulePolicy {
 public:
  PrefetchPolicy(BackwardPrefetch backward, PrefetchOptions options)
      : backward_(backward), options_(std::move(options)) {}

  [[nodiscard]] Schedule plan(const PlanInput& input) const override {
    detail::check_input(input);
    std::vector<ScheduleOp> ops =
        Planner(input, backward_, options_.forward_prefetch, kept_units(input, options_)).step();
    ops = detail::wait_for_reductions(ops, detail::reduction_kind(input), options_.limit_reduce_scatters);
    if (options_.limit_all_gathers) ops = detail::limit_gathers(ops, *options_.limit_all_gathers, !input.first_step);
    return {std::move(ops), input};
  }

  [[nodiscard]] std::string describe() const override {
    const auto limit = [](std::optional<int> n) { return n ? std::to_string(*n) : std::string("off"); };
    std::string keep = options_.keep == Keep::none ? "none" : options_.keep == Keep::last ? "last" : "all";
    if (options_.keep == Keep::named) {
      keep.clear();
      for (const std::string& name : options_.keep_units) keep += (keep.empty() ? "" : ",") + name;
    }
    return std::string("backward-prefetch=") +
           (backward_ == BackwardPrefetch::none  ? "none"
            : backward_ == BackwardPrefetch::pre ? "pre"
                                                 : "post") +
           " forward-prefetch=" + std::to_string(options_.forward_prefetch) +
           " limit-all-gathers=" + limit(options_.limit_all_gathers) +
           " limit-reduce-scatters=" + limit(options_.limit_reduce_scatters) + " keep-after-forward=" + keep;
  }

 private:
  BackwardPrefetch backward_;
  PrefetchOptions options_;
};

void check_options(const PrefetchOptions& options) {
  const auto check_limit = [](std::optional<int> n, const char* name) {
    if (n && (*n < 1 || *n > kMostOutstanding)) {
      throw InvalidInput(std::string(name) + " " + std::to_string(*n) + ": expected 1 to " +
                         std::to_string(kMostOutstanding) + ", or off");
    }
  };
  if (options.forward_prefetch < 0) {
    throw InvalidInput("forward prefetch " + std::to_string(options.forward_prefetch) + ": expected 0 or more visits");
  }
  check_limit(options.limit_all_gathers, "limit of all-gathers");
  check_limit(options.limit_reduce_scatters, "limit of reduce-scatters");
  if (options.keep != Keep::named && !options.keep_units.empty()) {
    throw InvalidInput("keep after forward: names units ('" + options.keep_units.front() +
                       "', ...) but does not keep by name: set keep to named");
  }
}

}  // namespace

std::shared_ptr<const SchedulePolicy> prefetch_policy(BackwardPrefetch backward, PrefetchOptions options) {
  check_options(options);
  return std::make_shared<PrefetchPolicy>(backward, std::move(options));
}

}  // namespace headroom
