#include "options/values.hpp"

#include "options/input_error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace headroom::bench {
namespace {

template <class T>
bool reads(std::string_view text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

std::string name(std::string_view option) { return "--" + std::string(option); }

}  // namespace

std::int64_t parse_whole(std::string_view option, std::string_view text, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  if (reads(text, value) && value >= min && value <= max) return value;
  throw bad_input(name(option), "a whole number from " + std::to_string(min) + " to " + std::to_string(max),
                  in_quotes(text));
}

std::uint64_t parse_seed(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  if (reads(text, value)) return value;
  throw bad_input(name(option), "a whole number from 0 to " + std::to_string(std::numeric_limits<std::uint64_t>::max()),
                  in_quotes(text));
}

double parse_real(std::string_view option, std::string_view text, const RealRange& range) {
  double value = 0;
  const bool is_number = reads(text, value) && std::isfinite(value);
  const bool above = range.open_min ? value > range.min : value >= range.min;
  const bool below = range.open_max ? value < range.max : value <= range.max;
  if (is_number && above && below) return value;
  throw bad_input(name(option),
                  std::string("a number ") + (range.open_min ? "above " : "from ") + to_text(range.min) +
                      (range.open_max ? " and below " : " to ") + to_text(range.max),
                  in_quotes(text));
}

std::size_t parse_size(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view suffix;
    int shift;
  };
  constexpr std::array<Unit, 4> kUnits{{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  std::string_view digits = text;
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    digits.remove_suffix(unit.suffix.size());
    shift = unit.shift;
  }
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 60;
  std::uint64_t value = 0;
  if (reads(digits, value) && value >= 1 && value <= (kLargest >> shift)) return value << shift;
  throw bad_input(name(option), "a size of 1 byte to 2^60, as 1000000, 512MiB or 2GiB", in_quotes(text));
}

std::size_t parse_choice(std::string_view option, std::string_view text, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string expected;
  for (std::size_t i = 0; i < names.size(); ++i)
    expected += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  throw bad_input(name(option), expected, in_quotes(text));
}

StepRange parse_steps(std::string_view option, std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::string_view first = text.substr(0, dots), last = dots == text.npos ? first : text.substr(dots + 2);
  StepRange steps;
  if (reads(first, steps.first) && reads(last, steps.last) && 0 <= steps.first && steps.first <= steps.last)
    return steps;
  throw bad_input(name(option), "two step numbers that rise, as 3..5", in_quotes(text));
}

std::string parse_path(std::string_view option, std::string_view text) {
  if (text.empty()) throw bad_input(name(option), "a path", "an empty text");
  return std::string(text);
}

std::string to_text(double value) {
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), result.ptr};
}

}  // namespace headroom::bench
