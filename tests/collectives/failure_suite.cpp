#include "collectives/failures.hpp"
#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <chrono>

namespace headroom::testing {
namespace {

using namespace std::chrono_literals;

std::string last_rank(const Job& job) { return "rank " + std::to_string(job.world() - 1); }

/// Every rank calls `usual` but the last, which calls `unusual`; all must see a CollectiveMismatch naming both.
template <class Usual, class Unusual>
void expect_mismatch(Rank& rank, const std::string& expected, const std::string& found, const Usual& usual,
                     const Unusual& unusual) {
  const Communicators communicators = rank.job.communicators();
  const Stream stream(rank.job.device());
  const bool last = rank.job.rank() == rank.job.world() - 1;
  std::vector<float> part(64), whole(64 * static_cast<std::size_t>(rank.job.world()));
  const std::string text = failure_of<CollectiveMismatch>([&] {
    if (last) {
      unusual(communicators, part, whole, stream.ref());
    } else {
      usual(communicators, part, whole, stream.ref());
    }
    stream.ref().synchronize();
  });
  expect_names(text, expected);
  expect_names(text, found);
  expect_names(text, last_rank(rank.job));
  // The group has ended, on every communicator of the set.
  failure_of<CollectiveMismatch>([&] {
    std::vector<std::uint64_t> words{1};
    communicators.control->agree(words);
  });
  rank.meet();
}

void gather(const Communicators& c, std::vector<float>& part, std::vector<float>& whole, StreamRef stream) {
  c.gather->all_gather(view_of(part), view_of(whole), stream, 3);
}

TEST_P(CollectiveFailure, Mismatch_OfOperation_IsNamedOnAllRanks) {
  run([](Rank& rank) {
    expect_mismatch(rank, "all_gather #1 (f32 x 64, unit 3)", "broadcast #1 (f32 x 64, root 0)", gather,
                    [](const Communicators& c, std::vector<float>& part, std::vector<float>&, StreamRef stream) {
                      c.gather->broadcast(view_of(part), 0, stream);
                    });
  });
}

TEST_P(CollectiveFailure, Mismatch_OfCount_IsNamedOnAllRanks) {
  run([](Rank& rank) {
    expect_mismatch(rank, "all_gather #1 (f32 x 64, unit 3)", "all_gather #1 (f32 x 62, unit 3)", gather,
                    [](const Communicators& c, std::vector<float>& part, std::vector<float>& whole, StreamRef stream) {
                      const std::size_t world = whole.size() / part.size();
                      c.gather->all_gather(slice_of(part, 0, 62), slice_of(whole, 0, 62 * world), stream, 3);
                    });
  });
}

TEST_P(CollectiveFailure, Mismatch_OfDtype_IsNamedOnAllRanks) {
  run([](Rank& rank) {
    expect_mismatch(rank, "f32 x 64", "i32 x 64", gather,
                    [](const Communicators& c, std::vector<float>& part, std::vector<float>& whole, StreamRef stream) {
                      c.gather->all_gather(view(part.data(), part.size(), DType::i32),
                                           view(whole.data(), whole.size(), DType::i32), stream, 3);
                    });
  });
}

TEST_P(CollectiveFailure, Mismatch_OfOrder_IsNamedOnAllRanks) {
  run([](Rank& rank) {
    const auto gathers = [](int first, int second) {
      return [first, second](const Communicators& c, std::vector<float>& part, std::vector<float>& whole, StreamRef s) {
        c.gather->all_gather(view_of(part), view_of(whole), s, first);
        c.gather->all_gather(view_of(part), view_of(whole), s, second);
      };
    };
    expect_mismatch(rank, "unit 0", "unit 2", gathers(0, 2), gathers(2, 0));
  });
}

TEST_P(CollectiveFailure, Mismatch_OfRoot_IsNamedOnAllRanks) {
  run([](Rank& rank) {
    const auto broadcast = [](int root) {
      return [root](const Communicators& c, std::vector<float>& part, std::vector<float>&, StreamRef stream) {
        c.control->broadcast(view_of(part), root, stream);
      };
    };
    expect_mismatch(rank, "root 0", "root 1", broadcast(0), broadcast(1));
  });
}

TEST_P(CollectiveFailure, Mismatch_OfAgreedWords_IsThrownOnAllRanks) {
  run([](Rank& rank) {
    const auto agree = [](std::size_t count) {
      return [count](const Communicators& c, std::vector<float>&, std::vector<float>&, StreamRef) {
        std::vector<std::uint64_t> words(count);
        c.control->agree(words);
      };
    };
    expect_mismatch(rank, "agree #1 (8 words)", "agree #1 (7 words)", agree(8), agree(7));
  });
}

TEST_P(CollectiveFailure, Deadline_OfARankThatStaysAway_NamesItOnThoseThatWait) {
  run({.deadline = 200ms}, [](Rank& rank) {
    rank.meet();
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> part(64), whole(64 * static_cast<std::size_t>(rank.job.world()));
    const bool away = rank.job.rank() == rank.job.world() - 1;
    rank.meet();
    if (away) rank.meet();  // The others have given up.
    const auto act = [&] {
      gather(communicators, part, whole, stream);
      stream.ref().synchronize();
    };
    if (away) {
      failure_of<DeadlineExceeded>(act);
      return;
    }
    // A rank that gave up first may have told this one, which then does not reach its own deadline.
    const std::string text = failure_of<DeadlineExceeded>(act);
    expect_names(text, last_rank(rank.job));
    expect_names(text, "all_gather #1 (f32 x 64, unit 3)");
    expect_names(text, "deadline of 200 ms");
    rank.meet();
  });
}

TEST_P(CollectiveFailure, Deadline_OfAnAgreement_IsThrown) {
  run({.deadline = 200ms}, [](Rank& rank) {
    rank.meet();
    const Communicators communicators = rank.job.communicators();
    std::vector<std::uint64_t> words(8);
    rank.meet();
    if (rank.job.rank() == 0) {
      const std::string text = failure_of<DeadlineExceeded>([&] { communicators.control->agree(words); });
      expect_names(text, "agree #1 (8 words)");
      expect_names(text, last_rank(rank.job));
    }
    rank.meet();
  });
}

TEST_P(CollectiveFailure, Deadline_OfAnotherLane_IsADeadlineOnAllThatWait) {
  run({.deadline = 200ms}, [](Rank& rank) {
    rank.meet();
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> part(64), whole(64 * static_cast<std::size_t>(rank.job.world()));
    rank.meet();
    if (rank.job.rank() < rank.job.world() - 1) {
      failure_of<DeadlineExceeded>([&] {
        std::vector<std::uint64_t> words{1};
        if (rank.job.rank() % 2 == 0) return communicators.control->agree(words);
        gather(communicators, part, whole, stream);
        stream.ref().synchronize();
      });
    }
    rank.meet();
  });
}

TEST_P(CollectiveFailure, Mismatch_OfAnotherLane_IsAMismatchOnAllThatWait) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> part(64), whole(64 * static_cast<std::size_t>(rank.job.world()));
    const bool last = rank.job.rank() == rank.job.world() - 1;
    communicators.gather->all_gather(view_of(part), view_of(whole), stream.ref(), last ? 4 : 3);
    const auto synchronize = [&] { stream.ref().synchronize(); };
    if (last) {
      failure_of<CollectiveMismatch>(synchronize);
    } else {
      failure_of<CollectiveMismatch>([&] {
        std::vector<std::uint64_t> words{1};
        communicators.control->agree(words);
      });
      failure_of<CollectiveMismatch>(synchronize);
    }
    rank.meet();
  });
}

TEST_P(CollectiveFailure, Abort_OnOneRank_EndsWhatItsPeersWaitFor) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> part(64), whole(64 * static_cast<std::size_t>(rank.job.world()));
    rank.meet();
    if (rank.job.rank() == 0) {
      communicators.control->abort("the test says so");
    } else {
      gather(communicators, part, whole, stream);
    }
    const std::string text = failure_of<CommunicatorError>([&] {
      stream.ref().synchronize();
      std::vector<std::uint64_t> words{1};
      communicators.control->agree(words);
    });
    expect_names(text, "the test says so");
    rank.meet();
  });
}

}  // namespace
}  // namespace headroom::testing
