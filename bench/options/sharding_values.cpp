#include "options/sharding_values.hpp"

#include "options/input_error.hpp"
#include "options/values.hpp"

#include <algorithm>
#include <array>

namespace headroom::bench {
namespace {

constexpr std::array<std::string_view, 3> kStrategies{"full_shard", "shard_grad_op",
                                                      "no_shard"};  // As they are numbered.
constexpr std::string_view kHybrid = "hybrid(";
constexpr std::int64_t kMaxGroup = 65'536;

/// N of "hybrid(N)"; 0: it is none.
int group_of(std::string_view text) {
  if (!text.starts_with(kHybrid) || !text.ends_with(")")) return 0;
  text.remove_prefix(kHybrid.size());
  text.remove_suffix(1);
  try {
    return static_cast<int>(parse_whole("shard", text, 1, kMaxGroup));
  } catch (const InvalidInput&) {
    return 0;
  }
}

}  // namespace

void set_shard(Config& config, std::string_view text) {
  const auto* const found = std::find(kStrategies.begin(), kStrategies.end(), text);
  if (found != kStrategies.end()) {
    config.strategy = static_cast<ShardStrategy>(found - kStrategies.begin());
    config.hybrid_ranks = 0;
    return;
  }
  const int group = group_of(text);
  if (group == 1)
    throw bad_input("--shard", "hybrid(N) of at least 2 ranks a group", in_quotes(text),
                    "Groups of one rank shard nothing: that is no_shard.");
  if (group == 0)
    throw bad_input("--shard", "full_shard, shard_grad_op, no_shard or hybrid(N), N ranks a group", in_quotes(text));
  config.strategy = ShardStrategy::hybrid;
  config.hybrid_ranks = group;
}

nlohmann::ordered_json get_shard(const Config& config) {
  if (config.strategy == ShardStrategy::hybrid)
    return std::string(kHybrid).append(std::to_string(config.hybrid_ranks)).append(")");
  return std::string(kStrategies.at(static_cast<std::size_t>(config.strategy)));
}

void set_wrap(Config& config, std::string_view text) {
  if (text == "block" || text == "half") {
    config.wrap = {text == "block" ? Wrap::Kind::block : Wrap::Kind::half, 1};
    return;
  }
  try {
    config.wrap = {Wrap::Kind::blocks, static_cast<int>(parse_whole("wrap", text, 1, 100'000))};
  } catch (const InvalidInput&) {
    throw bad_input("--wrap", "block, half, or a whole number of blocks a unit, from 1 to 100000", in_quotes(text));
  }
}

nlohmann::ordered_json get_wrap(const Config& config) {
  switch (config.wrap.kind) {
    case Wrap::Kind::half: return "half";
    case Wrap::Kind::blocks: return config.wrap.blocks;
    case Wrap::Kind::block: break;
  }
  return "block";
}

void set_keep(Config& config, std::string_view text) {
  using Keep = PrefetchOptions::Keep;
  config.prefetch.keep_units.clear();
  config.prefetch.keep = text == "none"   ? Keep::none
                         : text == "last" ? Keep::last
                         : text == "all"  ? Keep::all
                                          : Keep::named;
  if (config.prefetch.keep != Keep::named) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      throw bad_input("--keep-after-forward", "none, last, all, or unit names with commas", in_quotes(text));
    config.prefetch.keep_units.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

nlohmann::ordered_json get_keep(const Config& config) {
  switch (config.prefetch.keep) {
    case PrefetchOptions::Keep::none: return "none";
    case PrefetchOptions::Keep::last: return "last";
    case PrefetchOptions::Keep::all: return "all";
    case PrefetchOptions::Keep::named: break;
  }
  std::string names;
  for (const std::string& name : config.prefetch.keep_units) names += (names.empty() ? "" : ",") + name;
  return names;
}

}  // namespace headroom::bench
