#pragma once

#include "report/step_detail.hpp"

#include <cstddef>
#include <string>

namespace headroom::bench {

/// "812.3 MiB", "74.2 KiB", "48 B".
[[nodiscard]] std::string bytes_text(std::size_t bytes);

/// When the peak was: "step 1, backward of h.5".
[[nodiscard]] std::string peak_place(const PageSource& source, const StepDetail& detail);

/// The peak in words: which full parameters and gradients stood side by side, and what else was there.
[[nodiscard]] std::string peak_sentence(const PageSource& source, const StepDetail& detail);

/// What a statistic of a report means, in a line; empty: unknown.
[[nodiscard]] std::string meaning_of(const std::string& statistic);

}  // namespace headroom::bench
