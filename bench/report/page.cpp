#include "report/page.hpp"

#include "options/json_text.hpp"
#include "report/page_data.hpp"
#include "report/page_files.hpp"

#include <stdexcept>

namespace headroom::bench {
namespace {

/// Rows of detail: about 35 bytes each, so that a page stays below 6 MB.
constexpr std::size_t kDetailRows = 120'000;

void replace(std::string& text, std::string_view mark, std::string_view with) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw std::logic_error("report page: no " + std::string(mark) + " in page.html");
  text.replace(at, mark.size(), with);
}

/// JSON that may stand in a script element: no "</script" and no "<!--" in it.
std::string embeddable(const nlohmann::ordered_json& json) {
  const std::string text = dump(json);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string report_page(const std::string& recording) {
  const PageSource source = open_recording(recording);
  const RunOverview run = overview(source);
  const PageFiles files = page_files();
  std::string page(files.html);
  replace(page, "@css@", files.css);
  replace(page, "@d3@", files.d3);
  replace(page, "@scripts@", files.scripts);
  replace(page, "@data@", embeddable(page_data(source, run, details(source, run, kDetailRows))));
  return page;
}

}  // namespace headroom::bench
