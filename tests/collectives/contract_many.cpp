#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <algorithm>

namespace headroom::testing {
namespace {

constexpr std::size_t kOperations = 24;

TEST_P(CollectiveContract, ManyOperations_OnTwoCommunicatorsAndStreams_StayApart) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const auto self = static_cast<std::size_t>(rank.job.rank());
    const Communicators communicators = rank.job.communicators();
    const Stream gather(rank.job.device(), {StreamRole::gather, "gather"});
    const Stream reduce(rank.job.device(), {StreamRole::reduce, "reduce"});
    const auto numel_of = [](std::size_t k) { return 1 + 97 * k; };
    std::vector<std::vector<float>> sends(kOperations), gathered(kOperations), full(kOperations), shards(kOperations);
    for (std::size_t k = 0; k < kOperations; ++k) {
      sends[k] = values<float>(rank.job.rank(), numel_of(k), k);
      gathered[k].resize(world * numel_of(k));
      full[k] = values<float>(rank.job.rank(), world * numel_of(k), 1000 + k);
      shards[k].resize(numel_of(k));
      communicators.gather->all_gather(view_of(sends[k]), view_of(gathered[k]), gather, static_cast<int>(k));
      communicators.reduce->reduce_scatter(view_of(full[k]), view_of(shards[k]), reduce, static_cast<int>(k));
    }
    // Ranks wait in different orders: neither communicator may need the other one to be waited for.
    if (self % 2 == 0) gather.ref().synchronize();
    reduce.ref().synchronize();
    gather.ref().synchronize();
    for (std::size_t k = 0; k < kOperations; ++k) {
      const std::vector<float> last = values<float>(rank.job.world() - 1, numel_of(k), k);
      EXPECT_TRUE(std::equal(last.begin(), last.end(), gathered[k].end() - static_cast<std::ptrdiff_t>(numel_of(k))));
      const std::vector<float> sums = summed<float>(rank.job.world(), world * numel_of(k), 1000 + k);
      EXPECT_TRUE(std::equal(shards[k].begin(), shards[k].end(),
                             sums.begin() + static_cast<std::ptrdiff_t>(self * numel_of(k))))
          << k;
    }
  });
}

TEST_P(CollectiveContract, Ticket_Complete_PeersAreDoneWithTheSendBuffer) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    constexpr std::size_t kNumel = 3001;
    std::vector<float> send(kNumel), recv(world * kNumel), sum_send(world * kNumel), shard(kNumel);
    for (std::uint64_t round = 0; round < 40; ++round) {
      send = values<float>(rank.job.rank(), kNumel, round);
      sum_send = values<float>(rank.job.rank(), world * kNumel, round);
      communicators.gather->all_gather(view_of(send), view_of(recv), stream);
      const Ticket gathered = stream.ref().issued();
      communicators.reduce->reduce_scatter(view_of(sum_send), view_of(shard), stream);
      stream.ref().synchronize(gathered);
      std::fill(send.begin(), send.end(), -7.0F);
      stream.ref().synchronize();
      std::fill(sum_send.begin(), sum_send.end(), -7.0F);
      for (std::size_t peer = 0; peer < world; ++peer) {
        const std::vector<float> theirs = values<float>(static_cast<int>(peer), kNumel, round);
        ASSERT_TRUE(std::equal(theirs.begin(), theirs.end(), recv.begin() + static_cast<std::ptrdiff_t>(peer * kNumel)))
            << "round " << round << ", from rank " << peer;
      }
      const std::vector<float> sums = summed<float>(rank.job.world(), world * kNumel, round);
      ASSERT_TRUE(std::equal(shard.begin(), shard.end(),
                             sums.begin() + static_cast<std::ptrdiff_t>(rank.job.rank()) * std::ptrdiff_t{kNumel}))
          << "round " << round;
    }
  });
}

TEST_P(CollectiveContract, Agree_WhilePeersWaitForTheirStreams_LetsCollectivesRun) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> send = values<float>(rank.job.rank(), 500, 1), recv(500 * world);
    std::vector<std::uint64_t> words{static_cast<std::uint64_t>(rank.job.rank())};
    communicators.gather->all_gather(view_of(send), view_of(recv), stream);
    if (rank.job.rank() == 0) stream.ref().synchronize();  // Needs the gathers of ranks that already agree.
    communicators.control->agree(words);
    stream.ref().synchronize();
    EXPECT_EQ(words.front(), world - 1);
    const std::vector<float> last = values<float>(rank.job.world() - 1, 500, 1);
    EXPECT_TRUE(std::equal(last.begin(), last.end(), recv.end() - 500));
  });
}

TEST_P(CollectiveContract, HostAndStreamOperations_OfOneCommunicator_AreOrderedApart) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<double> total{1.0};
    std::vector<std::uint64_t> words{7};
    // Rank 0 agrees first, the others reduce first.
    if (rank.job.rank() == 0) communicators.control->agree(words);
    communicators.control->all_reduce(view_of(total), {}, stream);
    if (rank.job.rank() != 0) communicators.control->agree(words);
    stream.ref().synchronize();
    EXPECT_EQ(total.front(), rank.job.world());
    EXPECT_EQ(words.front(), 7U);
  });
}

TEST_P(CollectiveContract, TwoSets_AreIndependent) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Communicators first = rank.job.communicators(), second = rank.job.communicators();
    const Stream a(rank.job.device()), b(rank.job.device());
    std::vector<float> send = values<float>(rank.job.rank(), 64, 5), recv_a(64 * world), recv_b(64 * world);
    if (rank.job.rank() % 2 == 0) {
      first.gather->all_gather(view_of(send), view_of(recv_a), a);
      second.gather->all_gather(view_of(send), view_of(recv_b), b);
    } else {
      second.gather->all_gather(view_of(send), view_of(recv_b), b);
      first.gather->all_gather(view_of(send), view_of(recv_a), a);
    }
    a.ref().synchronize();
    b.ref().synchronize();
    EXPECT_EQ(recv_a, recv_b);
    EXPECT_EQ(first.gather->size(), rank.job.world());
    EXPECT_EQ(second.control->rank(), rank.job.rank());
  });
}

TEST_P(CollectiveContract, Communicator_Destroyed_ItsEnqueuedWorkStillRuns) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Stream stream(rank.job.device());
    std::vector<float> send = values<float>(rank.job.rank(), 64, 5), recv(64 * world);
    rank.job.communicators().gather->all_gather(view_of(send), view_of(recv), stream);
    stream.ref().synchronize();
    const std::vector<float> last = values<float>(rank.job.world() - 1, 64, 5);
    EXPECT_TRUE(std::equal(last.begin(), last.end(), recv.end() - 64));
  });
}

}  // namespace
}  // namespace headroom::testing
