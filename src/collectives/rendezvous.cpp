#include "collectives/rendezvous.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom::detail {
namespace {

std::size_t place_of(const Rendezvous::Visit& visit) { return static_cast<std::size_t>(visit.group->world_rank()); }

}  // namespace

Rendezvous::Rendezvous(int world, std::chrono::milliseconds deadline) : deadline_(deadline) {
  for (LaneState& lane : lanes_) {
    lane.posted.resize(static_cast<std::size_t>(world));
    lane.reached.resize(static_cast<std::size_t>(world));
  }
}

void Rendezvous::arrive(Visit& visit, const Posted& posted) {
  const std::lock_guard lock(mutex_);
  if (failure_.kind != Failure::Kind::none) raise_consequence(failure_);
  LaneState& lane = at(visit.lane);
  const std::size_t rank = place_of(visit);
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
    const Signature& own = at(visit.lane).posted[place_of(visit)].signature;
    if (failure_.lane == visit.lane && failure_.sequence == own.sequence) raise_own(failure_);
    raise_consequence(failure_);
  }
  visit.seen = version_;
  if (is_open) ++readers_;
  return is_open;
}

void Rendezvous::leave(Visit& visit) {
  const std::lock_guard lock(mutex_);
  --readers_;
  visit.gate = ++at(visit.lane).reached[place_of(visit)];
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

const Rendezvous::Posted& Rendezvous::posted(const Visit& visit, int rank) const {
  const LaneState& lane = lanes_.at(static_cast<std::size_t>(visit.lane.index));
  return lane.posted[static_cast<std::size_t>(visit.group->world_rank(rank))];
}

bool Rendezvous::open(const Visit& visit) {
  const LaneState& lane = at(visit.lane);
  const std::vector<int>& ranks = visit.group->ranks;
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return lane.reached[static_cast<std::size_t>(rank)] >= visit.gate; });
}

void Rendezvous::check_signatures(const Visit& visit) {
  std::vector<Signature> signatures;
  for (int rank = 0; rank < visit.group->size(); ++rank) signatures.push_back(posted(visit, rank).signature);
  if (std::all_of(signatures.begin(), signatures.end(), [&](const Signature& s) { return s == signatures.front(); })) {
    return;
  }
  failure_ = {Failure::Kind::mismatch, describe_mismatch(visit.lane, *visit.group, signatures), visit.lane,
              signatures.front().sequence};
}

void Rendezvous::fail_absent(const Visit& visit) {
  const LaneState& lane = at(visit.lane);
  const Signature& own = lane.posted[place_of(visit)].signature;
  std::string missing;
  for (const int rank : visit.group->ranks) {
    if (lane.reached[static_cast<std::size_t>(rank)] >= visit.gate) continue;
    const Signature& last = lane.posted[static_cast<std::size_t>(rank)].signature;
    missing += fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", rank,
                           last.sequence == 0 ? "nothing yet" : "last seen at " + describe(last));
  }
  const bool arrived = visit.gate != visit.first_gate;
  failure_ = {Failure::Kind::deadline,
              describe_absence({visit.lane, visit.group->world_rank(), own, deadline_, std::move(missing), arrived}),
              visit.lane, own.sequence};
  changed();
}

void Rendezvous::changed() {
  ++version_;
  change_.notify_all();
}

}  // namespace headroom::detail
