#pragma once

#include "options/config.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace headroom::bench {

// Options whose values are more than one name or number: each reads its text, or spells the value. Throws:
// InvalidInput.
void set_shard(Config& config, std::string_view text);
[[nodiscard]] nlohmann::ordered_json get_shard(const Config& config);
void set_wrap(Config& config, std::string_view text);
[[nodiscard]] nlohmann::ordered_json get_wrap(const Config& config);
void set_keep(Config& config, std::string_view text);
[[nodiscard]] nlohmann::ordered_json get_keep(const Config& config);

}  // namespace headroom::bench
