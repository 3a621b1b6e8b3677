#pragma once

#include "collectives/failure.hpp"
#include "collectives/rank_group.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace headroom::detail {

/// Where the ranks of one process meet: a sequence of gates a lane and group, each open once all ranks of the group
/// have reached it. Between two gates a rank may read its peers' buffers. One failure ends all lanes, of all groups.
/// Thread-safety: every member may be called from any thread; a Visit belongs to one.
class Rendezvous {
 public:
  struct Posted {
    Signature signature;
    const std::byte* send = nullptr;
    std::byte* recv = nullptr;
  };
  /// One rank's way through the gates of one operation.
  struct Visit {
    Lane lane;
    SharedGroup group;                              ///< Whose ranks meet there.
    std::uint64_t first_gate = 0, gate = 0;         ///< Counted over the life of the lane.
    std::chrono::steady_clock::time_point since{};  ///< When it reached its gate.
    std::uint64_t seen = 0;                         ///< The last change that it knows of.
  };

  Rendezvous(int world, std::chrono::milliseconds deadline);

  /// Posts and reaches the first gate. Throws: GroupEnded.
  void arrive(Visit& visit, const Posted& posted);
  /// True where the gate is open; unless it is the operation's `last` gate, peers' buffers stay readable until leave().
  /// Never blocks. Throws, once no peer reads this rank's buffers: the group's failure.
  [[nodiscard]] bool pass(Visit& visit, bool last);
  /// Reaches the next gate.
  void leave(Visit& visit);
  /// Blocks until something has changed since the last pass() that said no, at most for `most`.
  void pause(const Visit& visit, std::chrono::microseconds most);
  void abort(const char* reason) noexcept;

  /// What `rank` of the visit's group posted; stable between pass() and leave().
  [[nodiscard]] const Posted& posted(const Visit& visit, int rank) const;

 private:
  /// By world rank.
  struct LaneState {
    std::vector<Posted> posted;
    std::vector<std::uint64_t> reached;  ///< Gates.
  };

  [[nodiscard]] LaneState& at(Lane lane) { return lanes_.at(static_cast<std::size_t>(lane.index)); }
  [[nodiscard]] bool open(const Visit& visit);
  void check_signatures(const Visit& visit);
  void fail_absent(const Visit& visit);
  void changed();

  const std::chrono::milliseconds deadline_;
  std::mutex mutex_;
  std::condition_variable change_;
  std::uint64_t version_ = 1;
  int readers_ = 0;  ///< Ranks between pass() and leave().
  Failure failure_;
  std::array<LaneState, Lane::kCount> lanes_;
};

}  // namespace headroom::detail
