#include "options/agreement.hpp"

#include "options/input_error.hpp"
#include "options/json_text.hpp"
#include "runtime/shard/consensus.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <span>

namespace headroom::bench {
namespace {

using detail::share_text;
using Json = nlohmann::ordered_json;

std::string found_in(const Json& json, const std::string& key) {
  return json.contains(key) ? dump(json[key]) : "nothing";
}

void compare(const Json& mine, const Json& theirs) {
  const auto check = [&](const std::string& key) {
    if (mine.contains(key) && theirs.contains(key) && mine[key] == theirs[key]) return;
    throw bad_input(key == "command" ? key : "--" + key, found_in(theirs, key) + " as on rank 0", found_in(mine, key),
                    "All ranks need the same command line.");
  };
  for (const auto& item : theirs.items()) check(item.key());
  for (const auto& item : mine.items()) check(item.key());
}

}  // namespace

std::optional<Failure> vote(Communicator& control, const std::optional<Failure>& mine) {
  // The largest word wins: a cause before a consequence, then the lowest rank.
  constexpr std::uint64_t kCause = std::uint64_t{1} << 32;
  const auto size = static_cast<std::uint64_t>(control.size());
  std::uint64_t word = 0;
  if (mine) word = (mine->is_consequence ? 0 : kCause) + size - static_cast<std::uint64_t>(control.rank());
  std::array<std::uint64_t, 1> words{word};
  control.agree(words);
  if (words[0] == 0) return std::nullopt;

  const int root = static_cast<int>(size - words[0] % kCause);
  std::uint64_t code = control.rank() == root ? static_cast<std::uint64_t>(mine->exit_code) : 0;
  control.share(std::as_writable_bytes(std::span(&code, 1)), root);
  std::string text = share_text(control, control.rank() == root ? mine->text : std::string(), root);
  return Failure{static_cast<int>(code), std::move(text), words[0] < kCause};
}

void run_checked(Communicator& control, const std::function<void()>& action) {
  std::optional<Failure> mine;
  try {
    action();
  } catch (const std::exception& error) {
    mine = describe(error, control.rank());
  }
  if (const std::optional<Failure> agreed = vote(control, mine)) rethrow(*agreed);
}

void check_agreement(Communicator& control, const CommandLine& line) {
  const std::string mine = dump(to_json(line));
  const std::string theirs = share_text(control, mine, 0);
  run_checked(control, [&] { compare(Json::parse(mine), Json::parse(theirs)); });
}

void check_same(Communicator& control, const std::string& what, const std::string& found) {
  const std::string theirs = share_text(control, found, 0);
  run_checked(control, [&] {
    if (found != theirs) throw bad_input(what, theirs + " as on rank 0", found, "All ranks need the same files.");
  });
}

}  // namespace headroom::bench
