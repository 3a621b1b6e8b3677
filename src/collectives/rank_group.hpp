#pragma once

#include <memory>
#include <vector>

namespace headroom {
struct GroupOptions;
}

namespace headroom::detail {

/// The ranks of the world that a communicator spans, ascending: its rank r is the world's rank ranks[r].
struct RankGroup {
  std::vector<int> ranks;
  int rank = 0;  ///< Whose end of the communicator this is.

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int world_rank(int of) const noexcept { return ranks[static_cast<std::size_t>(of)]; }
  [[nodiscard]] int world_rank() const noexcept { return world_rank(rank); }
};

/// Operations outlive their communicator, and share its group.
using SharedGroup = std::shared_ptr<const RankGroup>;

/// The ranks of a shard group. Throws: InvalidInput unless they divide the world.
[[nodiscard]] int shard_ranks_of(const GroupOptions& options, int world);
/// `count` ranks from `first` on, `step` apart; `self`, a world rank, is one of them.
[[nodiscard]] SharedGroup make_group(int first, int step, int count, int self);

}  // namespace headroom::detail
