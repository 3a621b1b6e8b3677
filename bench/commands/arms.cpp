#include "commands/arms.hpp"

#include "options/option_table.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string label_of(const std::vector<Setting>& settings) {
  std::string label;
  for (const Setting& setting : settings) label += (label.empty() ? "" : " ") + setting.key + "=" + setting.value;
  return label.empty() ? "the options as given" : label;
}

void refuse_shared(const char* arm, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (std::find(kSharedByArms.begin(), kSharedByArms.end(), setting.key) != kSharedByArms.end()) {
      throw InvalidInput(
          fmt::format("--{} {}={}: expected an option that the arms may differ in, found one that they "
                      "share. Give --{} to both.",
                      arm, setting.key, setting.value, setting.key));
    }
  }
}

std::vector<std::string> changed_keys(const CommandLine& line, const Config& a, const Config& b) {
  const Json of_a = to_json(a);
  const Json of_b = to_json(b);
  std::vector<std::string> changed;
  for (const auto* settings : {&line.ab.a, &line.ab.b}) {
    for (const Setting& setting : *settings) {
      const bool is_new = std::find(changed.begin(), changed.end(), setting.key) == changed.end();
      if (is_new && of_a.at(setting.key) != of_b.at(setting.key)) changed.push_back(setting.key);
    }
  }
  return changed;
}

}  // namespace

Arms make_arms(const CommandLine& line) {
  refuse_shared("a", line.ab.a);
  refuse_shared("b", line.ab.b);
  if (!line.config.export_dir.empty()) {
    throw InvalidInput("--export: expected with train, found with ab, whose arms are thrown away. Leave it out.");
  }
  Arms arms{line.config.with(line.ab.a), line.config.with(line.ab.b), label_of(line.ab.a), label_of(line.ab.b), {}, {}};
  arms.changed = changed_keys(line, arms.a, arms.b);
  if (arms.changed.size() > 1 && !line.ab.allow_many) {
    throw InvalidInput(
        fmt::format("--a, --b: expected one option that differs, found {} ({}). A verdict on several at "
                    "once needs --allow-many.",
                    arms.changed.size(), fmt::join(arms.changed, ", ")));
  }
  const auto is_changed = [&arms](const char* key) {
    return std::find(arms.changed.begin(), arms.changed.end(), key) != arms.changed.end();
  };
  if (is_changed("deadline")) {
    arms.notes.emplace_back(
        "each arm waits for its peers by its own deadline; what both share, by the longer deadline");
  }
  const bool both_planned = arms.a.buffers == Buffers::planned && arms.b.buffers == Buffers::planned;
  if (is_changed("limit-all-gathers") && both_planned) {
    arms.notes.emplace_back("with planned buffers limit-all-gathers is inactive: both arms run alike");
  }
  if (arms.changed.empty()) arms.notes.emplace_back("nothing differs between the arms (A/A): the ratio is noise");
  return arms;
}

}  // namespace headroom::bench
