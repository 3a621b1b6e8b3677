#include "collectives/reference.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace headroom::testing {
namespace {

/// Waits for the stream's own end, whatever it is.
void drain(StreamRef stream) {
  try {
    stream.synchronize();
  } catch (const CommunicatorError& error) {
    EXPECT_NE(std::string(error.what()).find("enough"), std::string::npos) << error.what();
  }
}

/// Three ranks keep collectives in flight from buffers that they free as soon as an error reaches them, while the
/// fourth ends the group after `turns` of its own: for the sanitizers, which see any peer that still reads.
void abort_after(int turns, Executor executor) {
  std::atomic<int> ended{0};
  run_ranks(4, {.executor = executor, .seed = static_cast<std::uint64_t>(turns)}, {}, [&](Job& job) {
    const Communicators communicators = job.communicators();
    const Stream gather(job.device()), reduce(job.device());
    try {
      for (int turn = 0;; ++turn) {
        std::vector<float> part(20'000, 1.0F), gathered(80'000), full(80'000, 1.0F), shard(20'000);
        if (job.rank() == 3 && turn == turns) communicators.control->abort("enough");
        communicators.gather->all_gather(view_of(part), view_of(gathered), gather);
        communicators.reduce->reduce_scatter(view_of(full), view_of(shard), reduce);
        communicators.control->all_reduce(view_of(gathered), {}, gather.ref());
        try {
          gather.ref().synchronize();
        } catch (const CommunicatorError&) {
          drain(reduce.ref());
          throw;
        }
        reduce.ref().synchronize();
      }
    } catch (const CommunicatorError& error) {
      EXPECT_NE(std::string(error.what()).find("enough"), std::string::npos) << error.what();
      ++ended;
    }
  });
  EXPECT_EQ(ended, 4);
}

TEST(LocalAbort, CollectivesInFlight_NoPeerReadsBuffersThatWereFreed) {
  for (int turns = 0; turns < 30; ++turns) {
    SCOPED_TRACE(turns);
    abort_after(turns % 5, Executor::threads);
    abort_after(turns % 5, Executor::seeded);
  }
}

}  // namespace
}  // namespace headroom::testing
