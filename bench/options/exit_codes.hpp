#pragma once

#include <exception>
#include <string>

namespace headroom::bench {

/// An error that all ranks know, as text that names its rank, with the exit code it leads to.
struct Failure {
  int exit_code = 1;
  std::string text;             ///< "WHAT (rank R): EXPECTED vs FOUND. HINT", one line.
  bool is_consequence = false;  ///< Of a peer's failure, which says more.
};

/// CONTRACT section 1. 1: a programming error of ours.
[[nodiscard]] int exit_code_of(const std::exception& error) noexcept;
[[nodiscard]] Failure describe(const std::exception& error, int rank);
/// Throws what `failure` came from, as far as callers care: InvalidInput (2), InputOutputError (74), else AgreedError.
[[noreturn]] void rethrow(const Failure& failure);

/// `headroom: error: TEXT` on stderr.
void print_error(const Failure& failure) noexcept;

}  // namespace headroom::bench
