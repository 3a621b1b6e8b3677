#include "data/token_data.hpp"
#include "options/agreement.hpp"
#include "options/input_error.hpp"
#include "program/subprocess.hpp"

#include <headroom/communicator.hpp>

#include <gtest/gtest.h>

namespace headroom::bench {
namespace {

/// What `body` throws on each rank, by rank; "" where it returns.
template <class Body>
std::vector<std::string> texts_of(int ranks, const Body& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  run_ranks(ranks, {}, {}, [&](Job& job) {
    const std::shared_ptr<Communicator> control = job.communicators().control;
    std::string& text = texts[static_cast<std::size_t>(job.rank())];
    try {
      body(*control, job.rank());
    } catch (const Error& error) {
      text = std::string(error.damage() == Damage::none ? "" : "damage: ") + error.what();
    }
  });
  return texts;
}

CommandLine train_with(const std::vector<Setting>& settings) {
  CommandLine line;
  line.command = Command::train;
  line.config = make_config(settings);
  return line;
}

TEST(Agreement, EqualOptions_GoOn) {
  const auto texts = texts_of(3, [](Communicator& control, int) { check_agreement(control, train_with({})); });
  EXPECT_EQ(texts, std::vector<std::string>(3));
}

TEST(Agreement, OneRankWithAnotherOption_GivesAllTheSameTextWithBothValuesAndTheRank) {
  const auto texts = texts_of(3, [](Communicator& control, int rank) {
    check_agreement(control, train_with({{"seq", rank == 1 ? "64" : "32"}, {"positions", "64"}}));
  });
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    EXPECT_TRUE(text.starts_with("--seq (rank 1): expected 32 as on rank 0, found 64.")) << text;
  }
}

TEST(Agreement, RankZeroAlone_IsReportedByTheLowestOther) {
  const auto texts = texts_of(3, [](Communicator& control, int rank) {
    check_agreement(control, train_with({{"order", rank == 0 ? "sequential" : "shuffled"}}));
  });
  EXPECT_TRUE(texts[0].starts_with("--order (rank 1): expected \"sequential\"")) << texts[0];
  EXPECT_EQ(texts, std::vector<std::string>(3, texts[0]));
}

TEST(Agreement, FilesOfOneNameWithOtherContents_AreRefusedOnAllRanks) {
  const headroom::testing::TemporaryFolder folder;
  const auto texts = texts_of(3, [&](Communicator& control, int rank) {
    const std::string text = rank == 2 ? "the other text, as long" : "the one text, just as long";
    const std::string file = folder.file("text" + std::to_string(rank), text.substr(0, 20));
    check_same(control, "--data", TokenData::load({{file}, 8, 256, Order::sequential, 1}).summary());
  });
  EXPECT_TRUE(texts[0].starts_with("--data (rank 2): expected 20 tokens, crc32c ")) << texts[0];
  EXPECT_EQ(texts, std::vector<std::string>(3, texts[0]));
}

TEST(Agreement, AnotherCommand_IsNamed) {
  const auto texts = texts_of(2, [](Communicator& control, int rank) {
    CommandLine line = train_with({});
    if (rank == 1) line.command = Command::ab;
    check_agreement(control, line);
  });
  EXPECT_TRUE(texts[0].starts_with("command (rank 1)")) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Agreement, OptionsLongerThanOneMessage_AreCompared) {
  const auto texts = texts_of(2, [](Communicator& control, int rank) {
    std::vector<Setting> settings;
    for (int i = 0; i < 400; ++i) settings.push_back({"data", "/some/long/path/" + std::to_string(i)});
    if (rank == 1) settings.back().value = "/another";
    check_agreement(control, train_with(settings));
  });
  EXPECT_TRUE(texts[0].starts_with("--data (rank 1)")) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(RunChecked, NoFailure_GoesOn) {
  EXPECT_EQ(texts_of(2, [](Communicator& control, int) { run_checked(control, [] {}); }), std::vector<std::string>(2));
}

TEST(RunChecked, SeveralFailures_GiveAllThatOfTheLowestRank) {
  const auto texts = texts_of(4, [](Communicator& control, int rank) {
    run_checked(control, [&] {
      if (rank >= 2) throw bad_input("--data /x", "a file", "nothing on " + std::to_string(rank));
    });
  });
  EXPECT_EQ(texts, std::vector<std::string>(4, "--data /x (rank 2): expected a file, found nothing on 2."));
}

TEST(RunChecked, ErrorOfAnyClass_KeepsItsExitCode) {
  std::vector<int> codes(2);
  static_cast<void>(texts_of(2, [&](Communicator& control, int rank) {
    try {
      run_checked(control, [&] {
        if (rank == 1) throw InputOutputError("disk: full");
      });
    } catch (const std::exception& error) {
      codes[static_cast<std::size_t>(rank)] = exit_code_of(error);
    }
  }));
  EXPECT_EQ(codes, (std::vector<int>{74, 74}));
}

TEST(RunChecked, CauseOnAHigherRank_GoesBeforeItsConsequence) {
  const auto texts = texts_of(3, [](Communicator& control, int rank) {
    run_checked(control, [&] {
      if (rank == 0) throw StepAborted("a peer left", Fault::left, 1);
      if (rank == 1) throw std::runtime_error("the cause");
    });
  });
  for (const std::string& text : texts) EXPECT_NE(text.find("(rank 1): the cause"), std::string::npos) << text;
}

TEST(ExitCodes, EachErrorClass_HasTheContractsCode) {
  EXPECT_EQ(exit_code_of(InvalidInput("")), 2);
  EXPECT_EQ(exit_code_of(DeviceError(Damage::none, "")), 2);
  EXPECT_EQ(exit_code_of(DeviceError(Damage::device, "")), 87);
  EXPECT_EQ(exit_code_of(InputOutputError("")), 74);
  EXPECT_EQ(exit_code_of(OutOfMemory("", {})), 75);
  EXPECT_EQ(exit_code_of(StepAborted("", Fault::allocation, 0)), 75);
  EXPECT_EQ(exit_code_of(StepAborted("", Fault::bad_input, 0)), 2);
  EXPECT_EQ(exit_code_of(StepAborted("", Fault::order, 0)), 88);
  EXPECT_EQ(exit_code_of(StepAborted("", Fault::left, 0)), 88);
  EXPECT_EQ(exit_code_of(TornState("")), 70);
  EXPECT_EQ(exit_code_of(CollectiveMismatch("")), 88);
  EXPECT_EQ(exit_code_of(DeadlineExceeded("")), 86);
  EXPECT_EQ(exit_code_of(CommunicatorError("")), 87);
  EXPECT_EQ(exit_code_of(std::logic_error("")), 1);
}

TEST(ExitCodes, Description_IsOneLineThatNamesTheRankOnce) {
  EXPECT_EQ(describe(InvalidInput("--seq: expected 1, found 2."), 3).text, "--seq (rank 3): expected 1, found 2.");
  EXPECT_EQ(describe(InvalidInput("--seq (rank 1): expected 1, found 2."), 3).text,
            "--seq (rank 1): expected 1, found 2.");
  EXPECT_EQ(describe(InvalidInput("two\nlines"), 0).text, "two lines (rank 0)");
}

}  // namespace
}  // namespace headroom::bench
