#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <headroom/error.hpp>

#include <functional>
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

/// Runs `body` with the set and the groups of every divisor of the world.
void each_set(Rank& rank, bool one_for_both, const std::function<void(const Communicators&, const Expected&)>& body) {
  for (const int shard_ranks : divisors_of(rank.job.world())) {
    SCOPED_TRACE(shard_ranks);
    body(rank.job.communicators({.shard_ranks = shard_ranks, .one_for_both = one_for_both}),
         Expected(rank.job, shard_ranks));
  }
}

void expect_place(const Communicator& communicator, const std::vector<int>& ranks, int self) {
  EXPECT_EQ(communicator.size(), static_cast<int>(ranks.size()));
  EXPECT_EQ(ranks.at(static_cast<std::size_t>(communicator.rank())), self);
}

TEST_P(CollectiveContract, Groups_OfEveryDivisor_AreConsecutiveRanksAndTheirLikes) {
  run([](Rank& rank) {
    each_set(rank, false, [&](const Communicators& set, const Expected& expected) {
      expect_place(*set.gather, expected.shard, rank.job.rank());
      expect_place(*set.reduce, expected.shard, rank.job.rank());
      expect_place(*set.replicate, expected.owners, rank.job.rank());
      expect_place(*set.control, ranks_from(0, rank.job.world()), rank.job.rank());
      EXPECT_NE(set.gather, set.reduce);
    });
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
    for (int i = 0; i < 3; ++i) streams.emplace_back(rank.job.device());
    each_set(rank, false, [&](const Communicators& set, const Expected& expected) {
      const auto number = static_cast<std::size_t>(expected.number);
      for (std::uint64_t round = 0; round < 6; ++round) {  // Each group has counts of its own.
        check_round<float>(set, streams, expected, 1 + 50 * number + round, 10 * round);
        check_round<std::uint16_t>(set, streams, expected, 700 * number + round, 10 * round);
      }
    });
  });
}

/// Shares from the last rank of the group, which also has the largest word.
void share_and_agree(const Communicators& set, const Expected& expected, const Stream& stream) {
  const int self = expected.shard[static_cast<std::size_t>(expected.rank)], last = expected.shard.back();
  std::vector<std::uint64_t> words{static_cast<std::uint64_t>(self)};
  std::vector<float> root = values<float>(self, 5, 3);
  set.gather->broadcast(view_of(root), set.gather->size() - 1, stream.ref());
  stream.ref().synchronize();
  set.gather->agree(words);
  EXPECT_EQ(root, values<float>(last, 5, 3));
  EXPECT_EQ(words.front(), static_cast<std::uint64_t>(last));
}

TEST_P(CollectiveContract, Groups_OfDifferentPace_DoNotWaitForEachOther) {
  run([](Rank& rank) {
    const Stream stream(rank.job.device());
    each_set(rank, false, [&](const Communicators& set, const Expected& expected) {
      // Once in group 0, twice in group 1, ...: sequences are counted in each group alone.
      for (int turn = 0; turn <= expected.number; ++turn) share_and_agree(set, expected, stream);
    });
  });
}

/// In place, what is reduced is gathered again.
void reduce_and_gather(const Communicators& set, std::vector<float>& full, const Stream& stream, int unit) {
  const std::size_t numel = full.size() / static_cast<std::size_t>(set.gather->size());
  const TensorView own = slice_of(full, static_cast<std::size_t>(set.gather->rank()) * numel, numel);
  set.reduce->reduce_scatter(view_of(full), own, stream, unit);
  set.gather->all_gather(own, view_of(full), stream, unit);
}

TEST_P(CollectiveContract, OneForBoth_GathersAndReductionsOfOneStream_AreRight) {
  run([](Rank& rank) {
    const Stream stream(rank.job.device());
    each_set(rank, true, [&](const Communicators& set, const Expected& expected) {
      EXPECT_EQ(set.gather, set.reduce);
      std::vector<float> full = values<float>(rank.job.rank(), 100 * expected.shard.size(), 4);
      reduce_and_gather(set, full, stream, 0);
      reduce_and_gather(set, full, stream, 1);
      stream.ref().synchronize();
      const std::vector<float> once = summed<float>(expected.shard, full.size(), 4);
      std::vector<float> sums = once;  // The second time, all ranks add the same.
      for (std::size_t turn = 1; turn < expected.shard.size(); ++turn) {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += once[i];
      }
      EXPECT_EQ(full, sums);
    });
  });
}

void expect_refused(const Job& job, int shard_ranks) {
  const std::string expected =
      "expected a divisor of the " + std::to_string(job.world()) + " ranks, found " + std::to_string(shard_ranks);
  try {
    static_cast<void>(job.communicators({.shard_ranks = shard_ranks}));
    ADD_FAILURE() << "accepted " << shard_ranks;
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

TEST_P(CollectiveContract, Groups_ThatDoNotDivideTheWorld_AreRefusedBeforeAnythingIsCommunicated) {
  run([](Rank& rank) {
    const int world = rank.job.world();
    if (rank.job.rank() == 0) {  // Alone: it would not return if others were needed.
      for (const int shard_ranks : {-1, world + 1, 2 * world}) expect_refused(rank.job, shard_ranks);
      if (world > 2) expect_refused(rank.job, world - 1);
    }
    EXPECT_EQ(rank.job.communicators().gather->size(), world);
  });
}

}  // namespace
}  // namespace headroom::testing
