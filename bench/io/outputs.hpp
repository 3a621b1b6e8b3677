#pragma once

#include "options/config.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace headroom::bench {

/// The file that this rank writes for an output option: "{rank}" replaced; without it rank 0 writes. None: nothing.
[[nodiscard]] std::optional<std::string> output_path(const std::string& pattern, int rank);

/// The name of a file of one arm of `ab`: "trace.json" and "a" make "trace.a.json". Without an arm: as it is.
[[nodiscard]] std::string with_arm(const std::string& pattern, const std::string& arm);

/// A file that a command reads.
struct InputFile {
  std::string option, path;
};

/// Opens every output of the run (or of the arm) that this rank will write, without changing it; makes the export
/// folder. Throws: InvalidInput naming the option and why it cannot be written, or what else is that file: another
/// output, of any of `world` ranks, or `input`.
void check_outputs(const Config& config, int rank, int world, const std::string& arm = {},
                   const std::optional<InputFile>& input = std::nullopt);

/// "-" is stdout. Throws: InputOutputError.
void write_output(const std::string& path, std::string_view text);
/// Throws: InputOutputError where something printed on stdout was lost.
void flush_stdout();

}  // namespace headroom::bench
