#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace headroom {

/// How much state an error leaves unusable; ordered. Callers branch on this, never on the text.
enum class Damage {
  none,          ///< Nothing changed and nothing was enqueued; the call may be retried.
  step,          ///< The open step was dropped on every rank; parameters are bitwise what they were.
  communicator,  ///< The process group is broken; device memory is intact.
  device,        ///< The device context or the training state is lost; restart from a checkpoint.
};

/// Root of everything that Headroom throws on purpose. Programming errors (a wrong shape, a moved-from handle) are
/// std::logic_error instead.
class Error : public std::runtime_error {
 public:
  Error(Damage damage, const std::string& what) : std::runtime_error(what), damage_(damage) {}
  [[nodiscard]] Damage damage() const noexcept { return damage_; }

 private:
  Damage damage_;
};

/// An option, file or size that cannot be used. Damage::none; exit code 2.
class InvalidInput : public Error {
 public:
  explicit InvalidInput(const std::string& what) : Error(Damage::none, what) {}
};

/// Reading or writing failed during the run. Damage::none; exit code 74.
class InputOutputError : public Error {
 public:
  explicit InputOutputError(const std::string& what) : Error(Damage::none, what) {}
};

/// A recording that is damaged, cut short, of another version, or not one. Damage::none; exit code 65.
class BadFile : public Error {
 public:
  explicit BadFile(const std::string& what) : Error(Damage::none, what) {}
};

/// The allocator refused a request after its whole ladder. Damage::none; what() names the bound that was violated.
class OutOfMemory : public Error {
 public:
  struct Details {
    std::size_t requested_bytes = 0, allocated_bytes = 0, pending_bytes = 0, reserved_bytes = 0;
    std::size_t largest_free_block_bytes = 0, limit_bytes = 0;
    std::size_t cached_bytes = 0;    ///< Reserved, and free.
    std::size_t external_bytes = 0;  ///< Registered as not Headroom's own: what the limit knows nothing of.
  };
  OutOfMemory(const std::string& what, const Details& details) : Error(Damage::none, what), details_(details) {}
  [[nodiscard]] const Details& details() const noexcept { return details_; }

 private:
  Details details_;
};

/// Why a rank could not finish a step; ordered by severity (the vote takes the largest).
enum class Fault : std::uint32_t { none, allocation, bad_input, exception, order, left };

/// The open step was dropped, on every rank, with this same text. Damage::step.
class StepAborted : public Error {
 public:
  StepAborted(const std::string& what, Fault fault, int rank) : Error(Damage::step, what), fault_(fault), rank_(rank) {}
  [[nodiscard]] Fault fault() const noexcept { return fault_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }  ///< The lowest rank with the gravest fault.

 private:
  Fault fault_;
  int rank_;
};

/// Ranks asked for different collectives, schedules, paths or options. Damage::communicator; exit code 88.
class CollectiveMismatch : public Error {
 public:
  explicit CollectiveMismatch(const std::string& what) : Error(Damage::communicator, what) {}
};

/// A peer did not arrive in time. Damage::communicator; exit code 86.
class DeadlineExceeded : public Error {
 public:
  explicit DeadlineExceeded(const std::string& what) : Error(Damage::communicator, what) {}
};

/// A collective failed, or was aborted. Damage::communicator; exit code 87.
class CommunicatorError : public Error {
 public:
  explicit CommunicatorError(const std::string& what) : Error(Damage::communicator, what) {}
};

/// A device is absent (Damage::none) or failed for good (Damage::device).
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Parameters or optimizer state are half updated. Damage::device; exit code 70.
class TornState : public Error {
 public:
  explicit TornState(const std::string& what) : Error(Damage::device, what) {}
};

}  // namespace headroom
