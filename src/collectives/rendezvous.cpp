#include "collectives/rendezvous.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom::detail {

Rendezvous::Rendezvous(int size, std::chrono::milliseconds deadline) : size_(size), deadline_(deadline) {
  for (LaneState& lane : lanes_) {
    lane.posted.resize(static_cast<std::size_t>(size));
    lane.reached.resize(static_cast<std::size_t>(size));
  }
}

void Rendezvous::arrive(Visit& visit, const Posted& posted) {
  const std::lock_guard lock(mutex_);
  if (failure_.kind != Failure::Kind::none) raise_consequence(failure_);
  LaneState& lane = at(visit.lane);
  const auto rank = static_cast<std::size_t>(visit.rank);
  lane.posted[rank] = posted;
  visit.first_gate = visit.gate = ++lane.reached[rank];
  visit.since = std::chrono::steady_clock::now();
  if (open(visit)) check_signatures(visit);
  changed();
}

bool Rendezvous::pass(Visit& visit, bool last) {
  const std::lock_guard lock(mutex_);
  const bool is_open = open(visit);
  if (last && is_open) return true;
  if (failure_.kind == Failure::Kind::none && !is_open && std::chrono::steady_clock::now() - visit.since > deadline_) {
    fail_absent(visit);
  }
  if (failure_.kind != Failure::Kind::none) {
    visit.seen = version_;
    if (readers_ > 0) return false;  // A peer may be reading our buffers; it will notice the failure when it leaves.
    const Signature& own = at(visit.lane).posted[static_cast<std::size_t>(visit.rank)].signature;
    if (failure_.lane.index == visit.lane.index && failure_.sequence == own.sequence) raise_own(failure_);
    raise_consequence(failure_);
  }
  visit.seen = version_;
  if (is_open) ++readers_;
  return is_open;
}

void Rendezvous::leave(Visit& visit) {
  const std::lock_guard lock(mutex_);
  --readers_;
  visit.gate = ++at(visit.lane).reached[static_cast<std::size_t>(visit.rank)];
  visit.since = std::chrono::steady_clock::now();  // The deadline is for one gate, not for the whole operation.
  changed();
}

void Rendezvous::pause(const Visit& visit, std::chrono::microseconds most) {
  std::unique_lock lock(mutex_);
  change_.wait_for(lock, most, [&] { return version_ != visit.seen; });
}

void Rendezvous::abort(const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.kind != Failure::Kind::none) return;
  failure_.kind = Failure::Kind::aborted;
  try {
    failure_.text = reason;
  } catch (...) {
    failure_.text.clear();  // No memory for the reason; that it ended is what counts.
  }
  changed();
}

const Rendezvous::Posted& Rendezvous::posted(Lane lane, int rank) const {
  return lanes_.at(static_cast<std::size_t>(lane.index)).posted[static_cast<std::size_t>(rank)];
}

bool Rendezvous::open(const Visit& visit) {
  const LaneState& lane = at(visit.lane);
  return std::all_of(lane.reached.begin(), lane.reached.end(), [&](std::uint64_t gate) { return gate >= visit.gate; });
}

void Rendezvous::check_signatures(const Visit& visit) {
  std::vector<Signature> signatures;
  for (const Posted& posted : at(visit.lane).posted) signatures.push_back(posted.signature);
  if (std::all_of(signatures.begin(), signatures.end(), [&](const Signature& s) { return s == signatures.front(); })) {
    return;
  }
  failure_ = {Failure::Kind::mismatch, describe_mismatch(visit.lane, signatures), visit.lane,
              signatures.front().sequence};
}

void Rendezvous::fail_absent(const Visit& visit) {
  const LaneState& lane = at(visit.lane);
  const Signature& own = lane.posted[static_cast<std::size_t>(visit.rank)].signature;
  std::string missing;
  for (std::size_t rank = 0; rank < lane.reached.size(); ++rank) {
    if (lane.reached[rank] >= visit.gate) continue;
    const Signature& last = lane.posted[rank].signature;
    missing += fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", rank,
                           last.sequence == 0 ? "nothing yet" : "last seen at " + describe(last));
  }
  const bool arrived = visit.gate != visit.first_gate;
  failure_ = {Failure::Kind::deadline,
              describe_absence({visit.lane, visit.rank, own, deadline_, std::move(missing), arrived}), visit.lane,
              own.sequence};
  changed();
}

void Rendezvous::changed() {
  ++version_;
  change_.notify_all();
}

}  // namespace headroom::detail
