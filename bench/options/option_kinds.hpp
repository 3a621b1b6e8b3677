#pragma once

#include "options/input_error.hpp"
#include "options/option_table.hpp"
#include "options/values.hpp"

#include <type_traits>
#include <utility>

// The kinds of options that the table has more than once. `member` is a generic lambda that returns a reference into a
// Config.
namespace headroom::bench {

using Json = nlohmann::ordered_json;

inline constexpr std::int64_t kMaxCount = 1'000'000;
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 20;

template <class Member>
[[nodiscard]] Option whole(const char* group, const char* key, const char* help, Member member, std::int64_t min,
                           std::int64_t max) {
  const auto set = [=](Config& config, std::string_view text) {
    using T = std::remove_reference_t<decltype(member(config))>;
    member(config) = static_cast<T>(parse_whole(key, text, min, max));
  };
  return {group, key, "N", help, set, [=](const Config& config) { return Json(member(config)); }};
}

template <class Member>
[[nodiscard]] Option seed(const char* group, const char* key, const char* help, Member member) {
  return {group,
          key,
          "N",
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_seed(key, text); },
          [=](const Config& config) { return Json(member(config)); }};
}

template <class Member>
[[nodiscard]] Option real(const char* group, const char* key, const char* help, Member member, RealRange range) {
  return {group,
          key,
          "X",
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_real(key, text, range); },
          [=](const Config& config) { return Json(member(config)); }};
}

/// The enumerators of the member's type, in order, are spelled `names`.
template <class Member>
[[nodiscard]] Option choice(const char* group, const char* key, const char* help, Member member,
                            std::vector<std::string> names) {
  std::string value_help = help;
  value_help += ": ";
  for (const std::string& name : names) value_help += (name == names.front() ? "" : ", ") + name;
  const auto set = [=](Config& config, std::string_view text) {
    using T = std::remove_reference_t<decltype(member(config))>;
    member(config) = static_cast<T>(parse_choice(key, text, names));
  };
  return {group,  key,
          "NAME", value_help,
          set,    [=](const Config& config) { return Json(names.at(static_cast<std::size_t>(member(config)))); }};
}

template <class Member>
[[nodiscard]] Option path(const char* group, const char* key, const char* value_name, const char* help, Member member,
                          bool writes) {
  return {group,
          key,
          value_name,
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_path(key, text); },
          [=](const Config& config) { return member(config).empty() ? Json(nullptr) : Json(member(config)); },
          Option::Kind::single,
          writes};
}

template <class Member>
[[nodiscard]] Option flag(const char* group, const char* key, const char* help, Member member) {
  return {group,
          key,
          "",
          help,
          [=](Config& config, std::string_view text) {
            member(config) = parse_choice(key, text, {"false", "true"}) == 1;
          },
          [=](const Config& config) { return Json(member(config)); },
          Option::Kind::flag};
}

/// An option of which one value exists.
[[nodiscard]] inline Option only(const char* group, const char* key, const char* help, const Json& value) {
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
  return {group,
          key,
          "NAME",
          std::string(help) + ": " + name,
          [=](Config&, std::string_view text) { static_cast<void>(parse_choice(key, text, {name})); },
          [=](const Config&) { return value; }};
}

template <class Member>
[[nodiscard]] Option limit(const char* key, const char* help, Member member) {
  const auto set = [=](Config& config, std::string_view text) {
    if (text == "off") {
      member(config).reset();
      return;
    }
    try {
      member(config) = static_cast<int>(parse_whole(key, text, 1, kMaxCount));
    } catch (const InvalidInput&) {
      throw bad_input(std::string("--") + key, "a whole number from 1 to " + std::to_string(kMaxCount) + ", or off",
                      in_quotes(text));
    }
  };
  return {"Schedule", key, "N|off",
          help,       set, [=](const Config& config) { return member(config) ? Json(*member(config)) : Json("off"); }};
}

}  // namespace headroom::bench
