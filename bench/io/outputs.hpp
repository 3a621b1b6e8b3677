#pragma once

#include "options/config.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace headroom::bench {

/// The file that this rank writes for an output option: "{rank}" replaced; without it rank 0 writes. None: nothing.
[[nodiscard]] std::optional<std::string> output_path(const std::string& pattern, int rank);

/// Opens every output of the run that this rank will write, without changing it; makes the export folder. Throws:
/// InvalidInput naming the option and why it cannot be written.
void check_outputs(const Config& config, int rank);

/// "-" is stdout. Throws: InputOutputError.
void write_output(const std::string& path, std::string_view text);
/// Throws: InputOutputError where something printed on stdout was lost.
void flush_stdout();

}  // namespace headroom::bench
