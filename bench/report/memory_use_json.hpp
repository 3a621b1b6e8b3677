#pragma once

#include "report/rank_json.hpp"
#include "run/memory_moment.hpp"

#include <vector>

namespace headroom::bench {

/// What a rank sends: its process's figures, with their sources.
[[nodiscard]] Json to_json(const std::vector<MemoryMoment>& moments);
/// One rank's fields of the report: the figures of what it sent, divided by the number of ranks that share them.
void add_memory_use(Json& per_rank, const Json& moments, int ranks_in_process);
/// One line of a report's last moment, of all ranks.
[[nodiscard]] std::string memory_use_line(const Json& report);

}  // namespace headroom::bench
