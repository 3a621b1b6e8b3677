#pragma once

#include "io/safetensors.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace headroom::bench {

/// Reads a header's JSON and checks it against the bytes of data that follow it. Throws: InvalidInput naming `path` and
/// the offset or tensor that is wrong.
[[nodiscard]] std::map<std::string, SafetensorsReader::Entry> parse_safetensors_header(
    const std::string& header, std::uint64_t data_bytes, const std::filesystem::path& path);

}  // namespace headroom::bench
