#pragma once

#include "run/rank_record.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headroom::bench {

using Json = nlohmann::ordered_json;

/// `memory.peak` of the report, but for its rank. `unit_names`: of all units.
[[nodiscard]] Json peak_json(const MemoryPeak& peak, const std::vector<std::string>& unit_names);

/// What every rank sends to rank 0.
[[nodiscard]] Json to_json(const RankRecord& record, const std::vector<std::string>& unit_names);

/// The parts of the report (CONTRACT section 2) that are made of all ranks' records, in rank order. Times and counts
/// are means over the ranks, slack the least. `ranks_in_process`: how many share one process.
[[nodiscard]] Json memory_json(const std::vector<Json>& ranks, int ranks_in_process);
[[nodiscard]] Json communication_json(const std::vector<Json>& ranks);
[[nodiscard]] Json gaps_json(const std::vector<Json>& ranks);
[[nodiscard]] Json critical_path_json(const std::vector<Json>& ranks);
[[nodiscard]] Json availability_json(const std::vector<Json>& ranks);
/// Of one figure, by JSON pointer; null where a rank does not know it.
[[nodiscard]] Json mean_of(const std::vector<Json>& ranks, const char* pointer);

}  // namespace headroom::bench
