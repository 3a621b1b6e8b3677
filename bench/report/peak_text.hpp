#pragma once

#include <headroom/memory_statistics.hpp>

#include <string>
#include <vector>

namespace headroom::bench {

/// "812.3 MiB".
[[nodiscard]] std::string size_text(std::size_t bytes);

/// Where a peak was and which buffers overlapped there: "peak 812.3 MiB at event 1234, step 1, backward of h.5:
/// parameters of h.5 (current) and h.4 (next) and gradients of h.5 (computing) stand together, beside ...".
[[nodiscard]] std::string peak_text(const MemoryPeak& peak, const std::vector<std::string>& unit_names);

/// "step 1, backward of h.5", "step 1, all_gather of h.4 in backward"; without marks "before the first step".
[[nodiscard]] std::string place_text(std::int64_t step, const std::string& unit, const std::string& phase,
                                     const std::string& operation);

}  // namespace headroom::bench
