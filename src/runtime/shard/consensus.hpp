#pragma once

#include <headroom/communicator.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// How ranks agree: one small all-reduce a vote, and the same error text on all of them.
namespace headroom::detail {

enum class Stage : std::uint64_t { prepare = 1, begin, visit, commit, end };

/// What a rank is about to do: "begin a step".
[[nodiscard]] const char* name_of(Stage stage) noexcept;

/// What one rank brings to a vote. `hash` stands for everything that must be equal beside the epoch and the cursor.
struct Ballot {
  Stage stage = Stage::begin;
  Fault fault = Fault::none;
  std::uint64_t epoch = 0, hash = 0, data_cursor = 0;
};

/// What all ranks learn: the gravest fault with the lowest rank that has it, and which fields are equal.
struct Verdict {
  Fault fault = Fault::none;
  int rank = -1;
  bool same_stage = true, same_epoch = true, same_hash = true, same_cursor = true;
  std::uint64_t lowest_epoch = 0, highest_epoch = 0;
  std::uint64_t lowest_cursor = 0, highest_cursor = 0;

  /// All ranks are well and alike.
  [[nodiscard]] bool unanimous() const noexcept {
    return fault == Fault::none && same_stage && same_epoch && same_hash && same_cursor;
  }
};

/// Blocks until all ranks have voted. Throws: DeadlineExceeded and what else Communicator::agree throws.
[[nodiscard]] Verdict vote(Communicator& control, const Ballot& ballot);

/// The text of rank `root`, on every rank; any length. Blocks.
[[nodiscard]] std::string share_text(Communicator& control, std::string_view text, int root);

/// The first line in which the lowest differing rank departs from rank 0; -1: no rank does.
struct Difference {
  int rank = -1;
  std::string expected, found;
};
/// Called by all ranks once they know that their texts differ; equal on all of them. Blocks.
[[nodiscard]] Difference find_difference(Communicator& control, std::string_view own_text);

/// The same as an error. Throws: CollectiveMismatch, the same on every rank.
[[noreturn]] void throw_first_difference(Communicator& control, std::string_view what, std::string_view own_text);

/// FNV-1a, 64 bits: stable across ranks, builds and machines.
[[nodiscard]] std::uint64_t stable_hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) noexcept;

}  // namespace headroom::detail
