#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <sstream>

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
      {"pre_shard_grad_op", {pre, "--shard=shard_grad_op"}},
      {"pre_hybrid_accumulate2", {pre, "--shard=hybrid(2)", "--accumulate=2"}},
      {"no_shard_reduces2", {"--backward-prefetch=none", "--shard=no_shard", "--limit-reduce-scatters=2"}},
      {"post_accumulate2_full", {"--backward-prefetch=post", "--accumulation=full", "--accumulate=2"}},
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

TEST(ScheduleCommand, WrappedWorkload_VisitsItsUnits) {
  const auto forwards = [](const std::string& wrap) {
    std::istringstream lines(schedule({"--layers=3", "--heads=1", "--width=8", "--wrap=" + wrap}));
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("forward ")) names.push_back(line.substr(8));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(forwards("2"), (Names{"embedding", "h.0-1", "h.2", "embedding"}));
  EXPECT_EQ(forwards("3"), (Names{"embedding", "h.0-2", "embedding"}));
  EXPECT_EQ(forwards("half"),
            (Names{"embedding", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "h.2.attn", "h.2.mlp", "embedding"}));
}

TEST(ScheduleCommand, WorkloadWithPaths_PrintsEach) {
  const std::string text = schedule({"--workload=branching"});
  std::size_t paths = 0;
  for (std::size_t at = text.find("# path "); at != std::string::npos; at = text.find("# path ", at + 1)) ++paths;
  EXPECT_GE(paths, 2U) << text;
  EXPECT_EQ(schedule({"--workload=irregular"}).find("# path"), std::string::npos);
}

// CONTRACT section 3: neither the world (above 1) nor what a visit computes changes a line; nor do dtypes and wires.
TEST(ScheduleCommand, OptionsThatAreNoSchedule_ChangeNoLine) {
  const std::string text = schedule({"--units=3"});
  for (const char* option : {"--ranks=4", "--recompute=unit", "--gathered=bf16", "--reduced=bf16", "--buffers=observed",
                             "--communicators=1", "--verify", "--accumulation=full"})
    EXPECT_EQ(schedule({"--units=3", option}), text) << option;
  EXPECT_EQ(schedule({"--units=3", "--shard=hybrid(2)"}), schedule({"--units=3", "--shard=hybrid(3)", "--ranks=6"}));
  EXPECT_EQ(schedule({"--units=3", "--shard=shard_grad_op"}), schedule({"--units=3", "--keep-after-forward=all"}));
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
