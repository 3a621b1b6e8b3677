#pragma once

#include "collectives/collective.hpp"
#include "collectives/rank_group.hpp"

#include <headroom/error.hpp>

#include <chrono>
#include <span>
#include <string>

namespace headroom::detail {

/// Marks an error that another rank, or another operation, caused.
class Consequence {
 public:
  virtual ~Consequence() = default;
};

/// The group ended by a `Cause`: what it says where it did not happen, so that every rank ends by the same kind.
template <class Cause>
class GroupEnded final : public Cause, public Consequence {
 public:
  using Cause::Cause;
};

/// Why a process group ended.
struct Failure {
  enum class Kind { none, mismatch, deadline, broken, aborted };
  Kind kind = Kind::none;
  std::string text;
  Lane lane;                   ///< Of the operation that failed, with its sequence.
  std::uint64_t sequence = 0;  ///< 0 where no operation failed: somebody called abort.
};

/// Throws what the operation that failed says. Throws: CollectiveMismatch, DeadlineExceeded, CommunicatorError.
[[noreturn]] void raise_own(const Failure& failure);
/// Throws what every other operation of the group says. Throws: GroupEnded of what raise_own throws.
[[noreturn]] void raise_consequence(const Failure& failure);

/// The text of a Failure whose ranks posted different `signatures` (one a rank of `group`). Texts name world ranks.
[[nodiscard]] std::string describe_mismatch(Lane lane, const RankGroup& group, std::span<const Signature> signatures);

/// How long a rank waited, for what, and which ranks kept it waiting.
struct Absence {
  Lane lane;
  int rank = 0;  ///< In the world, as those that are missing.
  Signature waiting;
  std::chrono::milliseconds deadline{};
  std::string missing;   ///< "rank 2 (its last: all_gather #6 (...))", ...
  bool arrived = false;  ///< The missing ranks did arrive, but did not finish.
};
[[nodiscard]] std::string describe_absence(const Absence& absence);

}  // namespace headroom::detail
