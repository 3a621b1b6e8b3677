#include "options/config.hpp"

#include "io/hf_gpt2.hpp"
#include "options/config_checks.hpp"
#include "options/input_error.hpp"
#include "options/option_table.hpp"
#include "workloads/workload.hpp"

#include <algorithm>

namespace headroom::bench {
namespace {

void apply(const Option& option, const std::vector<Setting>& settings, Config& config) {
  std::vector<Setting> values;
  for (const Setting& setting : settings) {
    if (setting.key != option.key) continue;
    if (option.kind != Option::Kind::collecting) values.clear();
    values.push_back(setting);
  }
  for (const Setting& setting : values) {
    option.set(config, setting.value);
    config.given.push_back(setting);
  }
}

void apply_init(Config& config) {
  const ModelShape from_file = read_gpt2_shape(config.init_dir);
  struct Extent {
    const char* key;
    std::int64_t ModelShape::*member;
  };
  for (const Extent extent :
       {Extent{"layers", &ModelShape::layers}, Extent{"width", &ModelShape::width}, Extent{"heads", &ModelShape::heads},
        Extent{"vocab", &ModelShape::vocab}, Extent{"positions", &ModelShape::positions}}) {
    const std::int64_t expected = from_file.*extent.member;
    const std::int64_t found = config.model.*extent.member;
    if (config.is_given(extent.key) && found != expected)
      throw bad_input(std::string("--") + extent.key, std::to_string(expected) + " as in the model of --init",
                      std::to_string(found), "Leave the shape to --init.");
  }
  config.model = from_file;
}

std::vector<std::string> unit_names_of(const Config& config) {
  std::vector<std::string> names;
  for (const UnitSpec& unit : make_workload(config)->units()) names.push_back(unit.name);
  return names;
}

void resolve(Config& config, const std::vector<std::string>& unit_names) {
  check_workload(config);
  if (!config.init_dir.empty()) {
    apply_init(config);
  } else if (!config.is_given("positions")) {
    config.model.positions = config.seq;
  }
  check_config(config);
  if (config.prefetch.keep == PrefetchOptions::Keep::named)
    check_kept_units(config, unit_names.empty() ? unit_names_of(config) : unit_names);
}

}  // namespace

bool Config::is_given(std::string_view key) const noexcept {
  return std::any_of(given.begin(), given.end(), [&](const Setting& setting) { return setting.key == key; });
}

Config Config::with(const std::vector<Setting>& settings) const {
  std::vector<Setting> all;
  for (const Setting& old : given) {
    const auto is_replaced = [&](const Setting& setting) { return setting.key == old.key; };
    if (std::none_of(settings.begin(), settings.end(), is_replaced)) all.push_back(old);
  }
  all.insert(all.end(), settings.begin(), settings.end());
  Config result = make_config(all);
  if (!result.is_given("ranks")) result.ranks = ranks;
  return result;
}

std::shared_ptr<const SchedulePolicy> Config::policy() const { return prefetch_policy(backward_prefetch, prefetch); }

int Config::shard_ranks(int world) const noexcept {
  switch (strategy) {
    case ShardStrategy::no_shard: return 1;
    case ShardStrategy::hybrid: return hybrid_ranks;
    case ShardStrategy::full_shard:
    case ShardStrategy::shard_grad_op: break;
  }
  return world;
}

ParameterOptions Config::parameter_options() const {
  return {.seed = seed,
          .micro_batches = static_cast<int>(accumulate),
          .strategy = strategy,
          .accumulation = accumulation,
          .gathered = gathered,
          .reduced = reduced,
          .buffers = buffers,
          .verify = verify};
}

GroupOptions Config::group_options(int world) const { return {shard_ranks(world), communicators == 1, deadline}; }

Config make_config(const std::vector<Setting>& settings, const std::vector<std::string>& unit_names) {
  const std::vector<Option> table = option_table();
  for (const Setting& setting : settings) {
    const auto is_it = [&](const Option& option) { return setting.key == option.key; };
    if (std::none_of(table.begin(), table.end(), is_it))
      throw bad_input("--" + setting.key, "an option that exists", "an unknown one", "See `headroom train --help`.");
  }
  Config config;
  for (const Option& option : table) apply(option, settings, config);
  resolve(config, unit_names);
  return config;
}

std::vector<Setting> parse_settings(std::string_view option, std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n";
  std::vector<Setting> settings;
  for (std::size_t begin = text.find_first_not_of(kSpaces); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw bad_input("--" + std::string(option), "parts like backward-prefetch=post", in_quotes(part));
    settings.push_back({std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
    begin = text.find_first_not_of(kSpaces, end);
  }
  return settings;
}

nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Option& option : option_table()) json[option.key] = option.get(config);
  return json;
}

}  // namespace headroom::bench
