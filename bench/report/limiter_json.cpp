#include "report/limiter_json.hpp"

#include <spdlog/fmt/fmt.h>

namespace headroom::bench {
namespace {

/// With planned buffers the limit of gathers is skipped: the order of the schedule bounds them already. Steps without a
/// plan hold one set at a time.
bool limits_gathers(const Config& config, int world) {
  const bool plans = config.workload != WorkloadKind::branching || config.branches != Branches::data;
  return plans && config.buffers == Buffers::observed && config.prefetch.limit_all_gathers &&
         config.shard_ranks(world) > 1;
}

Json bounds(const Config& config, int world) {
  Json bounds = Json::array();
  if (limits_gathers(config, world))
    bounds.push_back(
        fmt::format("gathered parameters: those not yet released, and {} sets that were (limit-all-gathers {})",
                    *config.prefetch.limit_all_gathers - 1, *config.prefetch.limit_all_gathers));
  if (world > 1 && config.prefetch.limit_reduce_scatters)
    bounds.push_back(fmt::format("full gradients whose reduction was issued: {} (limit-reduce-scatters)",
                                 *config.prefetch.limit_reduce_scatters));
  return bounds;
}

Json does_not_bound(const Config& config, int world) {
  Json rest = Json::array();
  if (config.shard_ranks(world) > 1) {
    if (config.buffers == Buffers::planned)
      rest.push_back(
          "gathered parameters: with planned buffers limit-all-gathers is skipped, and the schedule's order is the "
          "bound");
    else if (!config.prefetch.limit_all_gathers)
      rest.push_back("gathered parameters: limit-all-gathers is off, so a host that runs ahead gathers any number");
  }
  if (world > 1 && !config.prefetch.limit_reduce_scatters)
    rest.push_back("full gradients whose reduction was issued: limit-reduce-scatters is off");
  if (world > 1 && config.accumulation == Accumulation::full && config.accumulate > 1)
    rest.push_back("full gradients that wait for the last micro-batch (accumulation full)");
  if (config.prefetch.keep != PrefetchOptions::Keep::none || config.strategy == ShardStrategy::shard_grad_op)
    rest.push_back("gathered parameters that are kept from forward to backward");
  for (const char* always :
       {"activations and workspaces", "gradient shards and optimizer state", "bytes outside the allocator"})
    rest.push_back(always);
  return rest;
}

}  // namespace

Json limiter_json(const Config& config, int world, const std::vector<Json>& ranks) {
  const Json waits = mean_of(ranks, "/limiter/waits");
  return {{"active", limits_gathers(config, world)},
          {"bounds", bounds(config, world)},
          {"does_not_bound", does_not_bound(config, world)},
          {"waits", waits.is_null() ? waits : Json(static_cast<std::int64_t>(waits.get<double>()))},
          {"waited_seconds", mean_of(ranks, "/limiter/waited_seconds")}};
}

}  // namespace headroom::bench
