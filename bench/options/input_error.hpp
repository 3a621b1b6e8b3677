#pragma once

#include <headroom/error.hpp>

#include <string>
#include <string_view>

namespace headroom::bench {

/// "WHAT: expected EXPECTED, found FOUND. HINT"
[[nodiscard]] inline InvalidInput bad_input(std::string_view what, std::string_view expected, std::string_view found,
                                            std::string_view hint = {}) {
  std::string text(what);
  text.append(": expected ").append(expected).append(", found ").append(found).append(".");
  if (!hint.empty()) text.append(" ").append(hint);
  return InvalidInput(text);
}

/// The text in quotes, long ones cut.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string result = "'";
  result.append(text.substr(0, kLongest)).append(text.size() > kLongest ? "...'" : "'");
  return result;
}

}  // namespace headroom::bench
