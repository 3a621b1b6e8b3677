#include "options/exit_codes.hpp"

#include <headroom/error.hpp>

#include <cstdio>
#include <new>

namespace headroom::bench {
namespace {

int exit_code_of_fault(Fault fault) {
  switch (fault) {
    case Fault::allocation: return 75;
    case Fault::bad_input: return 2;
    case Fault::order:
    case Fault::left: return 88;
    case Fault::none:
    case Fault::exception: break;
  }
  return 1;
}

// "WHAT: REST" -> "WHAT (rank R): REST".
std::string with_rank(const std::string& text, int rank) {
  if (text.find("(rank ") != std::string::npos) return text;
  const std::string where = " (rank " + std::to_string(rank) + ")";
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text + where : text.substr(0, colon) + where + text.substr(colon);
}

std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

}  // namespace

int exit_code_of(const std::exception& error) noexcept {
  if (const auto* agreed = dynamic_cast<const AgreedError*>(&error)) return agreed->exit_code();
  if (const auto* aborted = dynamic_cast<const StepAborted*>(&error)) return exit_code_of_fault(aborted->fault());
  if (const auto* device = dynamic_cast<const DeviceError*>(&error)) return device->damage() == Damage::none ? 2 : 87;
  if (dynamic_cast<const InvalidInput*>(&error) != nullptr) return 2;
  if (dynamic_cast<const BadFile*>(&error) != nullptr) return 65;
  if (dynamic_cast<const InputOutputError*>(&error) != nullptr) return 74;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return 75;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return 75;
  if (dynamic_cast<const TornState*>(&error) != nullptr) return 70;
  if (dynamic_cast<const CollectiveMismatch*>(&error) != nullptr) return 88;
  if (dynamic_cast<const DeadlineExceeded*>(&error) != nullptr) return 86;
  if (dynamic_cast<const CommunicatorError*>(&error) != nullptr) return 87;
  return 1;
}

Failure describe(const std::exception& error, int rank) {
  const int code = exit_code_of(error);
  std::string text = error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) text = "memory of this process: it is used up";
  if (code == 1 && dynamic_cast<const Error*>(&error) == nullptr) text = "internal error: " + text;
  const auto* aborted = dynamic_cast<const StepAborted*>(&error);
  const bool left = aborted != nullptr && aborted->fault() == Fault::left && aborted->rank() != rank;
  const bool broken = dynamic_cast<const CommunicatorError*>(&error) != nullptr;
  return {code, on_one_line(with_rank(text, rank)), left || broken};
}

void rethrow(const Failure& failure) {
  if (failure.exit_code == 2) throw InvalidInput(failure.text);
  if (failure.exit_code == 65) throw BadFile(failure.text);
  if (failure.exit_code == 74) throw InputOutputError(failure.text);
  throw AgreedError(failure);
}

void print_error(const Failure& failure) noexcept {
  std::fprintf(stderr, "headroom: error: %s\n", failure.text.c_str());
  std::fflush(stderr);
}

}  // namespace headroom::bench
