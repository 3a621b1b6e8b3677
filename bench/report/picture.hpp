#pragma once

#include <string>

namespace headroom::bench {

/// A recording's peak step as a PNG of 1600 x 900: stacked live memory with the reserved bytes and the peak, and the
/// streams below it on the same axis. Throws: as open_recording; InvalidInput where there is no event.
[[nodiscard]] std::string report_picture(const std::string& recording);

}  // namespace headroom::bench
