#pragma once

#include "options/config.hpp"

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::bench {

/// One option of a run: the only place that knows its name, its text and where it lies in Config.
struct Option {
  enum class Kind : std::uint8_t { single, collecting, flag };
  const char* group;
  const char* key;  ///< The long name without dashes.
  const char* value_name;
  std::string help;
  std::function<void(Config&, std::string_view)> set;  ///< Throws: InvalidInput.
  std::function<nlohmann::ordered_json(const Config&)> get;
  Kind kind = Kind::single;
  bool writes = false;  ///< Names an output: not for commands that only print.
};

[[nodiscard]] std::vector<Option> option_table();

/// What the arms of `ab` cannot have to themselves: one input and length, one job, and the program's own output.
inline constexpr std::array<std::string_view, 7> kSharedByArms{"data",          "steps", "ranks", "executor",
                                                               "executor-seed", "json",  "export"};

}  // namespace headroom::bench
