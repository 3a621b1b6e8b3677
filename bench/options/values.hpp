#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::bench {

/// Each reads all of `text` or throws InvalidInput naming `option`, what was expected and what was found.
[[nodiscard]] std::int64_t parse_whole(std::string_view option, std::string_view text, std::int64_t min,
                                       std::int64_t max);
[[nodiscard]] std::uint64_t parse_seed(std::string_view option, std::string_view text);
/// Finite; at least min, at most max; `open_min`: more than min; `open_max`: less than max.
struct RealRange {
  double min = 0, max = 0;
  bool open_min = false, open_max = false;
};
[[nodiscard]] double parse_real(std::string_view option, std::string_view text, const RealRange& range);
/// 1000000, 512MiB, 2GiB.
[[nodiscard]] std::size_t parse_size(std::string_view option, std::string_view text);
/// The index of `text` in `names`.
[[nodiscard]] std::size_t parse_choice(std::string_view option, std::string_view text,
                                       const std::vector<std::string>& names);
/// Steps of a run, both ends included.
struct StepRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min(), last = std::numeric_limits<std::int64_t>::max();
};
/// "3..5", or "3".
[[nodiscard]] StepRange parse_steps(std::string_view option, std::string_view text);
[[nodiscard]] std::string parse_path(std::string_view option, std::string_view text);

/// The shortest decimal that reads back as `value`.
[[nodiscard]] std::string to_text(double value);

}  // namespace headroom::bench
