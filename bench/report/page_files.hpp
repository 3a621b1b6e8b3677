#pragma once

#include <string_view>

namespace headroom::bench {

/// The files of report/page and d3, as they were when the program was built.
struct PageFiles {
  std::string_view html, css, d3, scripts;
};
[[nodiscard]] PageFiles page_files() noexcept;

}  // namespace headroom::bench
