#include "runtime/shard/consensus.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <span>

namespace headroom::detail {

namespace {

constexpr std::size_t kPieceBytes = 4096;  // what Communicator::share takes at once

/// The line of `text` that starts at `at`; moves `at` past it.
std::string_view next_line(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  at = std::min(end + 1, text.size());
  return line;
}

/// The first line in which two texts differ, as the two lines.
std::pair<std::string, std::string> first_difference(std::string_view left, std::string_view right) {
  std::size_t at_left = 0;
  std::size_t at_right = 0;
  while (at_left < left.size() || at_right < right.size()) {
    const std::string_view mine = next_line(left, at_left);
    const std::string_view theirs = next_line(right, at_right);
    if (mine != theirs) {
      return {std::string(mine), std::string(theirs)};
    }
  }
  return {};
}

}  // namespace

const char* name_of(Stage stage) noexcept {
  switch (stage) {
    case Stage::prepare: return "prepare the plans of steps";
    case Stage::begin: return "begin a step";
    case Stage::visit: return "visit a unit of a step without a plan";
    case Stage::commit: return "commit a step";
    case Stage::end: break;
  }
  return "end training";
}

Verdict vote(Communicator& control, const Ballot& ballot) {
  // Each value travels beside its complement: the maximum of complements is the complement of the minimum, so one
  // all-reduce tells both ends, and equality. The complement of the rank makes the lowest rank win a tie of faults.
  const auto stage = static_cast<std::uint64_t>(ballot.stage);
  const auto rank = static_cast<std::uint32_t>(control.rank());
  std::array<std::uint64_t, 9> words{static_cast<std::uint64_t>(ballot.fault) << 32 | (UINT32_MAX - rank),
                                     stage,
                                     ~stage,
                                     ballot.epoch,
                                     ~ballot.epoch,
                                     ballot.hash,
                                     ~ballot.hash,
                                     ballot.data_cursor,
                                     ~ballot.data_cursor};
  control.agree(words);
  Verdict verdict;
  verdict.fault = static_cast<Fault>(words[0] >> 32);
  verdict.rank = static_cast<int>(UINT32_MAX - static_cast<std::uint32_t>(words[0]));
  verdict.same_stage = words[1] == ~words[2];
  verdict.highest_epoch = words[3];
  verdict.lowest_epoch = ~words[4];
  verdict.same_epoch = verdict.highest_epoch == verdict.lowest_epoch;
  verdict.same_hash = words[5] == ~words[6];
  verdict.highest_cursor = words[7];
  verdict.lowest_cursor = ~words[8];
  verdict.same_cursor = verdict.highest_cursor == verdict.lowest_cursor;
  return verdict;
}

std::string share_text(Communicator& control, std::string_view text, int root) {
  std::uint64_t bytes = text.size();
  control.share(std::as_writable_bytes(std::span(&bytes, 1)), root);
  std::string shared(bytes, '\0');
  if (control.rank() == root) {
    shared = text;
  }
  const std::span<std::byte> all = std::as_writable_bytes(std::span(shared));
  for (std::size_t at = 0; at < all.size(); at += kPieceBytes) {
    control.share(all.subspan(at, std::min(kPieceBytes, all.size() - at)), root);
  }
  return shared;
}

Difference find_difference(Communicator& control, std::string_view own_text) {
  const std::string reference = share_text(control, own_text, 0);
  const auto rank = static_cast<std::uint64_t>(control.rank());
  const auto world = static_cast<std::uint64_t>(control.size());
  std::array<std::uint64_t, 1> word{reference == own_text ? 0 : world - rank};
  control.agree(word);
  if (word[0] == 0) {
    return {};
  }
  const int differing = static_cast<int>(world - word[0]);
  const std::string other = share_text(control, own_text, differing);
  const auto [expected, found] = first_difference(reference, other);
  return {differing, expected, found};
}

void throw_first_difference(Communicator& control, std::string_view what, std::string_view own_text) {
  const Difference difference = find_difference(control, own_text);
  if (difference.rank < 0) {
    throw CollectiveMismatch(fmt::format("{} differ between ranks", what));
  }
  throw CollectiveMismatch(fmt::format("{} differ between ranks: rank 0 has '{}', rank {} has '{}'", what,
                                       difference.expected, difference.rank, difference.found));
}

std::uint64_t stable_hash(std::string_view text, std::uint64_t seed) noexcept {
  std::uint64_t hash = seed;
  for (const char character : text) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace headroom::detail
