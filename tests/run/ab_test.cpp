// `ab` as a user sees it: two arms, one difference, one verdict.
#include "commands/arms.hpp"
#include "commands/commands.hpp"
#include "options/command_line.hpp"
#include "options/option_table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

/// This process's own: ctest runs several cases at once.
std::string temporary(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_" + name)).string();
}

CommandLine small_ab(const std::vector<std::string>& more) {
  std::vector<std::string> argv{"headroom", "ab",  "--layers", "2",  "--width", "16", "--heads", "2",
                                "--vocab",  "128", "--seq",    "12", "--steps", "3",  "--quiet", "--micro-batch",
                                "2"};
  argv.insert(argv.end(), more.begin(), more.end());
  return parse_command_line(argv);
}

struct Output {
  nlohmann::json json;
  std::string text;
};

Output run_ab(std::vector<std::string> arguments) {
  const std::string path = temporary("ab_test.json");
  arguments.insert(arguments.end(), {"--json", path});
  const CommandLine line = small_ab(arguments);
  testing::internal::CaptureStdout();
  SharedTokenData data;
  run_ranks(line.config.ranks, line.config.host, {}, [&line, &data](Job& job) {
    const std::shared_ptr<Communicator> control = job.communicators().control;
    ab_command(line, {job, *control, data});
  });
  Output output;
  output.text = testing::internal::GetCapturedStdout();
  std::ifstream(path) >> output.json;
  return output;
}

std::string last_line(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

TEST(Ab, ArmsThatDoNotDiffer_AreEquivalent) {
  const Output output = run_ab({"--ranks", "2", "--a", "", "--b", "", "--rounds", "6"});
  EXPECT_EQ(output.json.at("class"), "bitwise");
  EXPECT_EQ(output.json.at("equivalent"), true);
  EXPECT_TRUE(output.json.at("first_difference").is_null());
  EXPECT_TRUE(output.json.at("changed").empty());
  EXPECT_EQ(output.json.at("rounds"), 6);
  EXPECT_EQ(output.json.at("order").size(), 6U);
  const nlohmann::json& ratio = output.json.at("ratio").at("seconds_per_step");
  EXPECT_LE(ratio.at("low"), ratio.at("median"));
  EXPECT_LE(ratio.at("median"), ratio.at("high"));
  EXPECT_EQ(output.json.at("ratio").at("allocated_peak").at("median"), 1.0);
  EXPECT_EQ(last_line(output.text).rfind("verdict: ", 0), 0U) << output.text;
  EXPECT_EQ(output.json.at("a").at("parameters_crc32c"), output.json.at("b").at("parameters_crc32c"));
}

TEST(Ab, PreAgainstPost_ShowsOneSetLess) {
  const Output output = run_ab({"--ranks", "2", "--layers", "4", "--forward-prefetch", "0", "--a",
                                "backward-prefetch=pre", "--b", "backward-prefetch=post", "--rounds", "2"});
  EXPECT_EQ(output.json.at("changed"), nlohmann::json::array({"backward-prefetch"}));
  EXPECT_EQ(output.json.at("equivalent"), true);
  EXPECT_EQ(output.json.at("a").at("memory").at("sets_peak").at("parameters"), 2);
  EXPECT_EQ(output.json.at("b").at("memory").at("sets_peak").at("parameters"), 1);
  EXPECT_TRUE(output.json.at("ratio").at("seconds_per_step").at("low").is_null());
  EXPECT_EQ(output.json.at("verdict"), "none");  // two rounds say nothing
}

TEST(Ab, AnotherSeed_IsRefusedWithTheFirstDifference) {
  const Output output = run_ab({"--a", "", "--b", "seed=2", "--rounds", "6"});
  EXPECT_EQ(output.json.at("verdict"), "refused");
  EXPECT_EQ(output.json.at("equivalent"), false);
  EXPECT_NE(output.json.at("first_difference").get<std::string>().find("step 1"), std::string::npos);
  EXPECT_EQ(output.json.at("rounds"), 0);  // found in the warm-up: nothing to measure
}

TEST(Ab, ComparisonThatEndsEarly_SaysWhatItLacks) {
  const std::string trace = temporary("ab_test_trace.json");
  const Output output = run_ab({"--a", "", "--b", "seed=2", "--rounds", "6", "--trace", trace});
  EXPECT_NE(output.text.find("note: the comparison ended in round 0 of 6"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("were not written"), std::string::npos) << output.text;
  EXPECT_FALSE(std::filesystem::exists(temporary("ab_test_trace.a.json")));
  EXPECT_GT(output.json.at("a").at("seconds_per_step").at("median").get<double>(), 0);  // of the warm-up's own report
}

TEST(Ab, ComparisonOfAllRounds_WritesTheFilesOfBothArms) {
  const Output output = run_ab({"--a", "", "--b", "", "--rounds", "1", "--trace", temporary("ab_test_whole.json")});
  EXPECT_EQ(output.text.find("the comparison ended"), std::string::npos) << output.text;
  for (const char* name : {"ab_test_whole.a.json", "ab_test_whole.b.json"}) {
    EXPECT_TRUE(std::filesystem::remove(temporary(name))) << name;
  }
  EXPECT_GT(output.json.at("b").at("floating_point").at("utilization").get<double>(), 0);
}

TEST(Ab, ArmWithoutMemory_IsAResultOnAllRanks) {
  for (const char* limit : {"40KiB", "200KiB"}) {  // at the start, and in the first step
    SCOPED_TRACE(limit);
    const Output output =
        run_ab({"--ranks", "2", "--a", "", "--b", std::string("memory-limit=") + limit, "--rounds", "2"});
    EXPECT_EQ(output.json.at("verdict"), "b_infeasible");
    EXPECT_TRUE(output.json.at("b").is_null());
    EXPECT_FALSE(output.json.at("a").is_null());
    EXPECT_TRUE(output.json.at("equivalent").is_null());
  }
}

TEST(Ab, LimitOfGathersWithPlannedBuffers_IsSaidToBeInactive) {
  const Output output =
      run_ab({"--ranks", "2", "--a", "limit-all-gathers=1", "--b", "limit-all-gathers=off", "--rounds", "1"});
  EXPECT_NE(output.text.find("inactive"), std::string::npos) << output.text;
}

TEST(Arms, TwoDifferencesOrASharedOption_AreRefused) {
  EXPECT_THROW(static_cast<void>(make_arms(small_ab({"--a", "backward-prefetch=pre forward-prefetch=1", "--b",
                                                     "backward-prefetch=post forward-prefetch=2"}))),
               InvalidInput);
  EXPECT_THROW(static_cast<void>(make_arms(small_ab({"--a", "", "--b", "ranks=2"}))), InvalidInput);
  EXPECT_THROW(static_cast<void>(make_arms(small_ab({"--a", "", "--b", "steps=9"}))), InvalidInput);
  const Arms many = make_arms(small_ab({"--allow-many", "--a", "backward-prefetch=pre forward-prefetch=1", "--b",
                                        "backward-prefetch=post forward-prefetch=2"}));
  EXPECT_EQ(many.changed, (std::vector<std::string>{"backward-prefetch", "forward-prefetch"}));
}

TEST(Arms, EveryOptionButTheSharedOnes_IsAKey) {
  for (const Option& option : option_table()) {
    SCOPED_TRACE(option.key);
    const auto json = option.get(make_config({}));
    const std::string value = json.is_string() ? json.get<std::string>() : json.dump();
    const bool is_shared = std::find(kSharedByArms.begin(), kSharedByArms.end(), option.key) != kSharedByArms.end();
    CommandLine line = small_ab({});
    line.ab.b = {{option.key, value == "null" ? "1" : value}};
    line.config = make_config({{"seq", "8"}});
    if (std::string_view(option.key) == "init") line.ab.b[0].value = HEADROOM_SOURCE_DIR "/tests/gpt2_reference/tiny";
    line.ab.allow_many = true;
    if (is_shared) {
      EXPECT_THROW(static_cast<void>(make_arms(line)), InvalidInput);
    } else {
      EXPECT_NO_THROW(static_cast<void>(make_arms(line)));
    }
  }
}

TEST(Ab, AnotherDeadlineOrLog_IsNoDifference) {
  const Output output = run_ab({"--rounds", "1", "--allow-many", "--a", "quiet=true deadline=30 log-level=off", "--b",
                                "quiet=false deadline=20 log-level=error"});
  EXPECT_EQ(output.json.at("changed"), nlohmann::json::array({"quiet", "deadline", "log-level"}));
  EXPECT_EQ(output.json.at("equivalent"), true);
  EXPECT_NE(output.text.find("the longer deadline"), std::string::npos) << output.text;
}

TEST(Arms, SameValueInBothArms_IsNoChange) {
  const Arms arms = make_arms(small_ab({"--a", "backward-prefetch=pre", "--b", ""}));
  EXPECT_TRUE(arms.changed.empty());
  EXPECT_FALSE(arms.notes.empty());
}

}  // namespace
}  // namespace headroom::bench
