#include "collectives/failure.hpp"

#include <spdlog/fmt/fmt.h>

namespace headroom::detail {

void raise_own(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::mismatch: throw CollectiveMismatch(failure.text);
    case Failure::Kind::deadline: throw DeadlineExceeded(failure.text);
    case Failure::Kind::broken: throw CommunicatorError(failure.text);
    case Failure::Kind::none:
    case Failure::Kind::aborted: break;
  }
  raise_consequence(failure);
}

void raise_consequence(const Failure& failure) {
  const std::string text = fmt::format("the process group has ended, no collective can run on it: {}", failure.text);
  switch (failure.kind) {
    case Failure::Kind::mismatch: throw GroupEnded<CollectiveMismatch>(text);
    case Failure::Kind::deadline: throw GroupEnded<DeadlineExceeded>(text);
    case Failure::Kind::broken:
    case Failure::Kind::none:
    case Failure::Kind::aborted: break;
  }
  throw GroupEnded<CommunicatorError>(text);
}

std::string describe_mismatch(Lane lane, const RankGroup& group, std::span<const Signature> signatures) {
  std::string text = fmt::format("ranks disagree on a collective of communicator '{}': expected {} on all (rank {})",
                                 name_of(lane.communicator()), describe(signatures.front()), group.world_rank(0));
  for (int rank = 1; rank < group.size(); ++rank) {
    const Signature& found = signatures[static_cast<std::size_t>(rank)];
    if (found != signatures.front()) {
      text += fmt::format(", found {} (rank {})", describe(found), group.world_rank(rank));
    }
  }
  return text + ". All ranks must call the same collectives in the same order with the same dtype and counts";
}

std::string describe_absence(const Absence& absence) {
  return fmt::format(
      "a collective of communicator '{}' passed its deadline of {} ms (rank {}): expected all ranks to {} {}, missing: "
      "{}. The missing ranks are stuck, dead, slower than the deadline, or took another path",
      name_of(absence.lane.communicator()), absence.deadline.count(), absence.rank,
      absence.arrived ? "finish" : "arrive at", describe(absence.waiting), absence.missing);
}

}  // namespace headroom::detail
