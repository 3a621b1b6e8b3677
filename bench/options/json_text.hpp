#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headroom::bench {

/// `json` as text. Paths and arguments may be no UTF-8: bytes that are none become U+FFFD.
[[nodiscard]] inline std::string dump(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headroom::bench
