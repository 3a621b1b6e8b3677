#pragma once

#include "options/config.hpp"

#include <string>
#include <vector>

namespace headroom::bench {

// What one option cannot know of another, but for the world. Each throws InvalidInput.
void check_workload(const Config& config);  ///< Before any file is read.
void check_config(const Config& config);    ///< Once the model's shape is known.
void check_kept_units(const Config& config, const std::vector<std::string>& unit_names);

}  // namespace headroom::bench
