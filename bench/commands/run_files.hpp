#pragma once

#include "run/run.hpp"

#include <string>

namespace headroom::bench {

/// Writes --trace and --events of a finished run, where this rank is to write them. `arm` ("", "a", "b") goes before
/// the file name's extension. Throws: InputOutputError.
void write_run_files(Run& run, const Job& job, const std::string& arm = {});

}  // namespace headroom::bench
