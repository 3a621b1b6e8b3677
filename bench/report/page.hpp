#pragma once

#include <string>

namespace headroom::bench {

/// A recording's report as one HTML file that needs nothing else: style, scripts, d3 and data are inside. Its size is
/// bounded: the overview has all steps, detail is kept for the peak's step and as many of the first and last ones as
/// fit. Throws: as open_recording.
[[nodiscard]] std::string report_page(const std::string& recording);

}  // namespace headroom::bench
