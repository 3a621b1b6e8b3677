#include "collectives/rank_group.hpp"

#include <headroom/communicator.hpp>
#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

namespace headroom::detail {

int shard_ranks_of(const GroupOptions& options, int world) {
  const int ranks = options.shard_ranks == 0 ? world : options.shard_ranks;
  if (ranks < 1 || ranks > world || world % ranks != 0) {
    throw InvalidInput(
        fmt::format("the ranks of a shard group: expected a divisor of the {} ranks, found {}. Choose a "
                    "size into which the ranks can be cut",
                    world, ranks));
  }
  return ranks;
}

SharedGroup make_group(int first, int step, int count, int self) {
  auto group = std::make_shared<RankGroup>();
  for (int i = 0; i < count; ++i) group->ranks.push_back(first + i * step);
  group->rank = (self - first) / step;
  return group;
}

}  // namespace headroom::detail
