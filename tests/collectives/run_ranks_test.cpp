#include <headroom/communicator.hpp>

#include "collectives/reference.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace headroom::testing {
namespace {

constexpr int kRanks = 4;

void agree(const Job& job) {
  std::array<std::uint64_t, 1> words{1};
  job.communicators().control->agree(words);
}

TEST(RunRanks, Bodies_RunOnceARank_RankZeroOnTheCallingThread) {
  std::mutex mutex;
  std::set<int> ranks;
  std::set<std::thread::id> threads;
  const std::thread::id caller = std::this_thread::get_id();
  run_ranks(kRanks, {}, {}, [&](Job& job) {
    const std::lock_guard lock(mutex);
    ranks.insert(job.rank());
    threads.insert(std::this_thread::get_id());
    EXPECT_EQ(job.world(), kRanks);
    EXPECT_STREQ(job.launcher(), "threads");
    EXPECT_EQ(job.rank() == 0, std::this_thread::get_id() == caller);
  });
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(threads.size(), 4U);
}

TEST(RunRanks, NoRank_IsRefused) {
  EXPECT_THROW(run_ranks(0, {}, {}, [](Job&) {}), std::logic_error);
}

TEST(RunRanks, BodyThrows_ThatErrorIsRethrownNotItsConsequences) {
  std::atomic<int> consequences{0};
  try {
    run_ranks(kRanks, {}, {}, [&](Job& job) {
      if (job.rank() == 2) throw InvalidInput("the third rank's own");
      try {
        agree(job);
      } catch (const CommunicatorError& error) {
        EXPECT_NE(std::string(error.what()).find("rank 2 failed: the third rank's own"), std::string::npos)
            << error.what();
        ++consequences;
        throw;
      }
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "the third rank's own");
  }
  EXPECT_EQ(consequences, kRanks - 1);
}

TEST(RunRanks, BodyWrapsAConsequence_TheOriginalIsRethrown) {
  EXPECT_THROW(run_ranks(kRanks, {}, {},
                         [&](Job& job) {
                           if (job.rank() == kRanks - 1) throw std::out_of_range("mine");
                           try {
                             agree(job);
                           } catch (const CommunicatorError& error) {
                             throw CommunicatorError(std::string("wrapped: ") + error.what());
                           }
                         }),
               std::out_of_range);
}

TEST(RunRanks, GroupEndsByAMismatch_TheOperationsOwnErrorIsRethrown) {
  try {
    run_ranks(2, {}, {}, [&](Job& job) {
      const Communicators communicators = job.communicators();
      const Stream stream(job.device());
      std::vector<float> part(8);
      communicators.gather->broadcast(view_of(part), job.rank(), stream.ref());
      if (job.rank() == 1) return stream.ref().synchronize();
      std::array<std::uint64_t, 1> words{1};
      communicators.control->agree(words);
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CollectiveMismatch& error) {
    EXPECT_EQ(std::string(error.what()).rfind("ranks disagree", 0), 0U) << error.what();
  }
}

TEST(RunRanks, AllBodiesThrow_TheLowestRankIsRethrown) {
  try {
    run_ranks(kRanks, {}, {}, [&](Job& job) { throw InvalidInput("rank " + std::to_string(job.rank())); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "rank 0");
  }
}

TEST(RunRanks, BodyThrows_PeersLearnItOnlyOnceItsObjectsAreGone) {
  struct Guard {
    std::atomic<bool>& gone;
    ~Guard() { gone = true; }
  };
  std::atomic<bool> gone{false};
  EXPECT_THROW(run_ranks(2, {}, {},
                         [&](Job& job) {
                           if (job.rank() == 1) {
                             const Guard guard{gone};
                             throw InvalidInput("x");
                           }
                           try {
                             agree(job);
                           } catch (const CommunicatorError&) {
                             EXPECT_TRUE(gone);
                             throw;
                           }
                         }),
               InvalidInput);
}

TEST(RunRanks, SeededRanks_EachHaveADeviceOfTheirOwn) {
  std::mutex mutex;
  std::vector<Device> devices;
  run_ranks(kRanks, {.executor = Executor::seeded, .seed = 3}, {}, [&](Job& job) {
    const std::lock_guard lock(mutex);
    for (const Device& other : devices) EXPECT_FALSE(other == job.device());
    devices.push_back(job.device());
  });
  EXPECT_EQ(devices.size(), 4U);
}

}  // namespace
}  // namespace headroom::testing
