#pragma once

#include <headroom/error.hpp>

#include <exception>
#include <string>

namespace headroom::bench {

/// An error as text that names its rank, with the exit code that it leads to.
struct Failure {
  int exit_code = 1;
  std::string text;             ///< "WHAT (rank R): EXPECTED vs FOUND. HINT", one line.
  bool is_consequence = false;  ///< Of a peer's failure, which says more.
};

/// A failure that every rank has been told of and that has no class of its own here.
class AgreedError : public Error {
 public:
  explicit AgreedError(const Failure& failure) : Error(Damage::none, failure.text), exit_code_(failure.exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// CONTRACT section 1; 1: an error inside Headroom.
[[nodiscard]] int exit_code_of(const std::exception& error) noexcept;
[[nodiscard]] Failure describe(const std::exception& error, int rank);
/// Throws: InvalidInput (2), BadFile (65), InputOutputError (74), else AgreedError.
[[noreturn]] void rethrow(const Failure& failure);

/// `headroom: error: TEXT` on stderr.
void print_error(const Failure& failure) noexcept;

}  // namespace headroom::bench
