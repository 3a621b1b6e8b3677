#include "program/subprocess.hpp"

#include <gtest/gtest.h>

namespace headroom::testing {
namespace {

std::string schedule(const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"schedule"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = run_headroom(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

// tests/schedule/golden: a file's name says its options; those not named are none, 0 and off.
TEST(ScheduleCommand, GoldenFiles_ArePrinted) {
  struct Case {
    const char* file;
    std::vector<std::string> options;
  };
  const std::string pre = "--backward-prefetch=pre";
  const Case cases[] = {
      {"none", {"--backward-prefetch=none"}},
      {"pre", {pre}},
      {"post", {"--backward-prefetch=post"}},
      {"pre_forward1", {pre, "--forward-prefetch=1"}},
      {"pre_forward1_reduces2_keep_last",
       {pre, "--forward-prefetch=1", "--limit-reduce-scatters=2", "--keep-after-forward=last"}},
      {"pre_gathers2", {pre, "--limit-all-gathers=2"}},
      {"pre_gathers2_first", {pre, "--limit-all-gathers=2", "--first"}},
  };
  for (const Case& golden : cases) {
    SCOPED_TRACE(golden.file);
    std::vector<std::string> options{"--units=3", "--forward-prefetch=0", "--limit-all-gathers=off",
                                     "--limit-reduce-scatters=off"};
    options.insert(options.end(), golden.options.begin(), golden.options.end());
    const std::string expected =
        read_file(std::string(HEADROOM_SOURCE_DIR) + "/tests/schedule/golden/" + golden.file + ".txt");
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(schedule(options), expected);
  }
}

TEST(ScheduleCommand, Workload_VisitsTheEmbeddingFirstAndLast) {
  const std::string text = schedule({"--layers=1", "--heads=1", "--width=8", "--keep-after-forward=h.0"});
  EXPECT_NE(text.find("forward embedding\n"), std::string::npos);
  EXPECT_NE(text.find("embedding.f@1\n"), std::string::npos);
  EXPECT_EQ(text.find("release h.0.f\n"), std::string::npos);
}

TEST(ScheduleCommand, OneRank_GathersNothing) {
  EXPECT_EQ(schedule({"--units=2", "--ranks=1"}).find("all_gather"), std::string::npos);
  EXPECT_EQ(schedule({"--units=2", "--ranks=3"}), schedule({"--units=2"}));
}

TEST(ScheduleCommand, UnderMpi_PrintsOnce) {
  const Outcome outcome = run_headroom_under_mpi(2, {"schedule", "--units=2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, schedule({"--units=2"}));
}

}  // namespace
}  // namespace headroom::testing
