#pragma once

#include "options/config.hpp"
#include "report/rank_json.hpp"

namespace headroom::bench {

/// What limit-all-gathers did in a run, what it and limit-reduce-scatters bound, and what neither does: CONTRACT
/// section 2's "limiter".
[[nodiscard]] Json limiter_json(const Config& config, int world, const std::vector<Json>& ranks);

}  // namespace headroom::bench
