#include "collectives/launch.hpp"

#include <barrier>
#include <string>

namespace headroom::testing {
namespace {

constexpr std::uint64_t kSeeds = 5;

void launch_once(int world, const HostOptions& host, const CommunicatorOptions& options,
                 const std::function<void(Rank&)>& body) {
  std::barrier<> barrier(world);
  run_ranks(world, host, options, [&](Job& job) {
    SCOPED_TRACE("rank " + std::to_string(job.rank()) + " of " + std::to_string(world) +
                 (host.executor == Executor::threads ? ", threads" : ", seed " + std::to_string(host.seed)));
    const Stream first(job.device());
    Rank rank{job, [&barrier] { barrier.arrive_and_wait(); }};
    body(rank);
  });
}

std::string name_of_world(const ::testing::TestParamInfo<int>& info) { return "World" + std::to_string(info.param); }

}  // namespace

void launch(int world, const CommunicatorOptions& options, const std::function<void(Rank&)>& body) {
  launch_once(world, {.executor = Executor::threads}, options, body);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    launch_once(world, {.executor = Executor::seeded, .seed = seed}, options, body);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CollectiveContract, ::testing::Values(1, 2, 3, 4, 5), name_of_world);
INSTANTIATE_TEST_SUITE_P(Threads, CollectiveFailure, ::testing::Values(2, 3, 4), name_of_world);

}  // namespace headroom::testing
