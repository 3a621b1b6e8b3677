#pragma once

#include "report/step_detail.hpp"

#include <nlohmann/json_fwd.hpp>

namespace headroom::bench {

/// What the page shows, as `window.headroom` has it. Lists of blocks, changes and operations are columns, for size;
/// times are nanoseconds after the step's `origin_ns`.
[[nodiscard]] nlohmann::ordered_json page_data(const PageSource& source, const RunOverview& run,
                                               const std::vector<StepDetail>& details);

}  // namespace headroom::bench
