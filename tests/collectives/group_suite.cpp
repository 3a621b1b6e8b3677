#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <headroom/error.hpp>

#include <algorithm>
#include <string>

namespace headroom::testing {
namespace {

std::vector<int> divisors_of(int world) {
  std::vector<int> divisors;
  for (int ranks = 1; ranks <= world; ++ranks) {
    if (world % ranks == 0) divisors.push_back(ranks);
  }
  return divisors;
}

/// The groups of one rank, as they should be.
struct Expected {
  Expected(const Job& job, int shard_ranks)
      : number(job.rank() / shard_ranks),
        rank(job.rank() % shard_ranks),
        shard(ranks_from(number * shard_ranks, shard_ranks)),
        owners(ranks_from(rank, job.world() / shard_ranks, shard_ranks)) {}
  int number, rank;  ///< Of the group; in the group.
  std::vector<int> shard, owners;
};

TEST_P(CollectiveContract, Groups_OfEveryDivisor_AreConsecutiveRanksAndTheirLikes) {
  run([](Rank& rank) {
    for (const int shard_ranks : divisors_of(rank.job.world())) {
      SCOPED_TRACE(shard_ranks);
      const Communicators set = rank.job.communicators({.shard_ranks = shard_ranks});
      for (const Communicator* shard : {set.gather.get(), set.reduce.get()}) {
        EXPECT_EQ(shard->size(), shard_ranks);
        EXPECT_EQ(shard->rank(), rank.job.rank() % shard_ranks);
      }
      EXPECT_EQ(set.replicate->size(), rank.job.world() / shard_ranks);
      EXPECT_EQ(set.replicate->rank(), rank.job.rank() / shard_ranks);
      EXPECT_EQ(set.control->size(), rank.job.world());
      EXPECT_EQ(set.control->rank(), rank.job.rank());
      EXPECT_NE(set.gather, set.reduce);
    }
  });
}

/// One gather, one reduction and one sum across groups under way at a time, each on a stream of its own.
template <class T>
void check_round(const Communicators& set, const std::vector<Stream>& streams, const Expected& expected,
                 std::size_t numel, std::uint64_t salt) {
  const std::size_t ranks = expected.shard.size();
  const auto place = static_cast<std::size_t>(expected.rank);
  const int self = expected.shard[place];
  std::vector<T> send = values<T>(self, numel, salt), gathered(ranks * numel);
  std::vector<T> full = values<T>(self, ranks * numel, salt + 1), across = values<T>(self, 33, salt + 2);
  set.gather->all_gather(view_of(send), view_of(gathered), streams[0]);
  set.reduce->reduce_scatter(view_of(full), slice_of(full, place * numel, numel), streams[1]);
  set.replicate->all_reduce(view_of(across), {}, streams[2]);
  for (const Stream& stream : streams) stream.ref().synchronize();
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    EXPECT_EQ(part_of(gathered, peer * numel, numel), values<T>(expected.shard[peer], numel, salt)) << peer;
  }
  const std::vector<T> sums = summed<T>(expected.shard, ranks * numel, salt + 1);
  EXPECT_EQ(part_of(full, place * numel, numel), part_of(sums, place * numel, numel));
  EXPECT_EQ(across, summed<T>(expected.owners, 33, salt + 2));
}

TEST_P(CollectiveContract, Groups_AtTheSameTime_MoveAndSumTheirOwnData) {
  run([](Rank& rank) {
    std::vector<Stream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(Stream(rank.job.device()));
    for (const int shard_ranks : divisors_of(rank.job.world())) {
      SCOPED_TRACE(shard_ranks);
      const Communicators set = rank.job.communicators({.shard_ranks = shard_ranks});
      const Expected expected(rank.job, shard_ranks);
      const auto number = static_cast<std::size_t>(expected.number);
      for (std::uint64_t round = 0; round < 6; ++round) {  // Each group has counts of its own.
        check_round<float>(set, streams, expected, 1 + 50 * number + round, 10 * round);
        check_round<std::uint16_t>(set, streams, expected, 700 * number + round, 10 * round);
      }
    }
  });
}

TEST_P(CollectiveContract, Groups_OfDifferentPace_DoNotWaitForEachOther) {
  run([](Rank& rank) {
    for (const int shard_ranks : divisors_of(rank.job.world())) {
      SCOPED_TRACE(shard_ranks);
      const Communicators set = rank.job.communicators({.shard_ranks = shard_ranks});
      const Stream stream(rank.job.device());
      const Expected expected(rank.job, shard_ranks);
      // Group 0 makes one gather, group 1 two, ...: sequences are counted in each group alone.
      for (int turn = 0; turn <= expected.number; ++turn) {
        std::vector<std::uint64_t> words{static_cast<std::uint64_t>(rank.job.rank())};
        std::vector<float> root = values<float>(rank.job.rank(), 5, 3);
        set.gather->broadcast(view_of(root), shard_ranks - 1, stream.ref());
        stream.ref().synchronize();
        set.gather->agree(words);
        EXPECT_EQ(root, values<float>(expected.shard.back(), 5, 3));
        EXPECT_EQ(words.front(), static_cast<std::uint64_t>(expected.shard.back()));
      }
    }
  });
}

TEST_P(CollectiveContract, OneForBoth_GathersAndReductionsOfOneStream_AreRight) {
  run([](Rank& rank) {
    for (const int shard_ranks : divisors_of(rank.job.world())) {
      SCOPED_TRACE(shard_ranks);
      const Communicators set = rank.job.communicators({.shard_ranks = shard_ranks, .one_for_both = true});
      EXPECT_EQ(set.gather, set.reduce);
      const Stream stream(rank.job.device());
      const Expected expected(rank.job, shard_ranks);
      const auto ranks = static_cast<std::size_t>(shard_ranks), place = static_cast<std::size_t>(expected.rank);
      std::vector<float> full = values<float>(rank.job.rank(), ranks * 100, 4);
      for (int turn = 0; turn < 2; ++turn) {  // In place: what was reduced is gathered.
        set.reduce->reduce_scatter(view_of(full), slice_of(full, place * 100, 100), stream, turn);
        set.gather->all_gather(slice_of(full, place * 100, 100), view_of(full), stream, turn);
      }
      stream.ref().synchronize();
      std::vector<float> sums = summed<float>(expected.shard, ranks * 100, 4);
      const std::vector<float> once = sums;
      for (std::size_t turn = 1; turn < ranks; ++turn) {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += once[i];
      }
      EXPECT_EQ(full, sums);
    }
  });
}

TEST_P(CollectiveContract, Groups_ThatDoNotDivideTheWorld_AreRefusedBeforeAnythingIsCommunicated) {
  run([](Rank& rank) {
    const int world = rank.job.world();
    for (const int shard_ranks : {-1, world + 1, 2 * world, world > 2 ? world - 1 : -2}) {
      const std::string expected =
          "expected a divisor of the " + std::to_string(world) + " ranks, found " + std::to_string(shard_ranks);
      // By one rank alone, so it would hang or fail if others were needed.
      if (rank.job.rank() != 0) continue;
      try {
        static_cast<void>(rank.job.communicators({.shard_ranks = shard_ranks}));
        ADD_FAILURE() << "accepted " << shard_ranks;
      } catch (const InvalidInput& error) {
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
    }
    EXPECT_EQ(rank.job.communicators().gather->size(), world);
  });
}

}  // namespace
}  // namespace headroom::testing
