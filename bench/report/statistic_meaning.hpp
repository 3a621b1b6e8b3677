#pragma once

#include <string>

namespace headroom::bench {

/// What a statistic of a recording means, in a line; empty: unknown.
[[nodiscard]] std::string meaning_of(const std::string& statistic);

}  // namespace headroom::bench
