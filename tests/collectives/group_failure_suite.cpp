#include "collectives/failures.hpp"
#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <chrono>
#include <string>

namespace headroom::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* kConsequence = "the process group has ended";

std::string name_of_rank(int rank) { return "rank " + std::to_string(rank); }

/// Two groups where the world has four ranks, else one; the last two ranks are in one group.
struct Halves {
  explicit Halves(const Job& job)
      : ranks(job.world() % 4 == 0 ? job.world() / 2 : job.world()),
        first(job.world() - ranks),
        last(job.world() - 1),
        in_last(job.rank() >= first) {}
  int ranks, first, last;  ///< Of a group; of the last group, in the world.
  bool in_last;
};

/// Waits for all ranks of the world.
void agree(const Communicators& set) {
  std::vector<std::uint64_t> words{1};
  set.control->agree(words);
}

void gather(const Communicators& set, const Stream& stream, int unit) {
  std::vector<float> part(8), whole(8 * static_cast<std::size_t>(set.gather->size()));
  set.gather->all_gather(view_of(part), view_of(whole), stream, unit);
  stream.ref().synchronize();
}

TEST_P(CollectiveFailure, GroupMismatch_NamesWorldRanksInTheGroupAndEndsTheSetOnAll) {
  run([](Rank& rank) {
    const Halves halves(rank.job);
    const Communicators set = rank.job.communicators({.shard_ranks = halves.ranks});
    const Stream stream(rank.job.device());
    rank.meet();  // Who is still making its set would hear of the failure there.
    const std::string text = failure_of<CollectiveMismatch>([&] {
      // Rank 0's operation is the first of its communicator too, as the one that fails, but in another group.
      if (halves.in_last || rank.job.rank() == 0) gather(set, stream, rank.job.rank() == halves.last ? 7 : 3);
      agree(set);
    });
    expect_names(text, "communicator 'gather'");
    expect_names(text, "unit 3) on all (" + name_of_rank(halves.first) + ")");
    expect_names(text, "unit 7) (" + name_of_rank(halves.last) + ")");
    EXPECT_EQ(names(text, kConsequence), !halves.in_last) << text;
    rank.meet();
  });
}

TEST_P(CollectiveFailure, GroupDeadline_OfTheSetNotTheJob_NamesTheWorldRankThatStaysAway) {
  run([](Rank& rank) {
    const Halves halves(rank.job);
    rank.meet();
    const Communicators set = rank.job.communicators({.shard_ranks = halves.ranks, .deadline = 200ms});
    const Stream stream(rank.job.device());
    const bool away = rank.job.rank() == halves.last;
    rank.meet();
    if (away) rank.meet();  // The others have given up.
    const std::string text = failure_of<DeadlineExceeded>([&] {
      if (halves.in_last) gather(set, stream, 3);
      agree(set);
    });
    if (away) return;
    expect_names(text, "deadline of 200 ms");
    expect_names(text, name_of_rank(halves.last));
    rank.meet();
  });
}

TEST_P(CollectiveFailure, GroupAbort_EndsWhatRanksOfOtherGroupsWaitFor) {
  run([](Rank& rank) {
    const Halves halves(rank.job);
    const Communicators set = rank.job.communicators({.shard_ranks = halves.ranks});
    rank.meet();
    if (rank.job.rank() == halves.last) set.replicate->abort("the last rank says so");
    const std::string text = failure_of<CommunicatorError>([&] { agree(set); });
    expect_names(text, "the last rank says so");
    EXPECT_TRUE(names(text, kConsequence)) << text;
    rank.meet();
  });
}

TEST_P(CollectiveFailure, GroupOptions_ThatDiffer_AreNamedOnAllRanks) {
  run([](Rank& rank) {
    const GroupOptions usual{.shard_ranks = rank.job.world(), .deadline = 30s};
    const auto expect_difference = [&](const GroupOptions& other, const std::string& found) {
      const bool last = rank.job.rank() == rank.job.world() - 1;
      const std::string text =
          failure_of<CollectiveMismatch>([&] { static_cast<void>(rank.job.communicators(last ? other : usual)); });
      expect_names(text, "shard ranks " + std::to_string(rank.job.world()) + ", gather and reduce apart");
      expect_names(text, found);
      expect_names(text, name_of_rank(rank.job.world() - 1));
      rank.meet();
    };
    expect_difference({.shard_ranks = 1, .deadline = 30s}, "shard ranks 1");
    expect_difference({.one_for_both = true, .deadline = 30s}, "one for both");
    expect_difference({.deadline = 20s}, "deadline 20000 ms");
    expect_difference({}, "deadline the job's");
    agree(rank.job.communicators(usual));
    rank.meet();
  });
}

}  // namespace
}  // namespace headroom::testing
