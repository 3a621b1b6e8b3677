#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headroom::testing {
namespace {

std::vector<std::string> small(const std::string& command, std::vector<std::string> more) {
  std::vector<std::string> arguments{command,   "--layers=1",      "--width=8", "--heads=1",
                                     "--seq=8", "--micro-batch=1", "--steps=2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Results, ArgumentsThatAreNoUtf8_AreReportedWithReplacements) {
  const TemporaryFolder folder;
  const std::string data = folder.file("x\xff.txt", std::string(100, 'a'));
  const std::string report = folder.path("r\xff.json");
  const auto expect_report = [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const nlohmann::json json = nlohmann::json::parse(read_file(report), nullptr, false);
    EXPECT_TRUE(json.is_object());
    EXPECT_NE(json.dump().find("x\xEF\xBF\xBD.txt"), std::string::npos) << json.dump().substr(0, 400);
    static_cast<void>(folder.file("r\xff.json", ""));
  };
  expect_report(run_headroom(small("train", {"--data", data, "--json", report})));
  expect_report(run_headroom_under_mpi(2, small("train", {"--data", data, "--json", report})));
  expect_report(run_headroom(small("ab", {"--rounds=1", "--data", data, "--json", report})));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowed = true;  // a sanitizer keeps a shadow of all memory, and says nothing of it
#else
constexpr bool kShadowed = false;
#endif

/// Per rank and moment: used = reserved + external + unattributed, and of that at most 2 % nobody's.
void expect_attributed(const Outcome& outcome, std::size_t world, const std::vector<std::string>& owners) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json ranks = nlohmann::json::parse(outcome.out).at("memory").at("per_rank");
  ASSERT_EQ(ranks.size(), world);
  for (const nlohmann::json& rank : ranks) {
    for (const std::string& owner : owners) EXPECT_TRUE(rank.at("external").contains(owner)) << owner;
    ASSERT_EQ(rank.at("system").size(), 3U);
    for (const nlohmann::json& moment : rank.at("system")) {
      const auto used = moment.at("used").get<std::size_t>();
      const auto unattributed = moment.at("unattributed").get<std::size_t>();
      std::size_t sum = moment.at("reserved").get<std::size_t>() + unattributed;
      for (const auto& owner : moment.at("external").items()) {
        sum += owner.value().get<std::size_t>();
        EXPECT_NE(rank.at("external_sources").at(owner.key()), "") << owner.key();
      }
      EXPECT_EQ(sum, used) << moment;
      EXPECT_LE(unattributed, kShadowed ? used : used * 2 / 100) << moment;
    }
    EXPECT_EQ(rank.at("system").back().at("reserved"), rank.at("reserved_bytes.all.peak"));  // nothing was given back
  }
}

TEST(Results, OfBytesThatTheSystemCounts_AtMostTwoPercentAreNobodys) {
  const std::vector<std::string> train{"train",    "--layers=4", "--width=256",     "--heads=4",
                                       "--seq=32", "--steps=4",  "--micro-batch=1", "--json=-"};
  std::vector<std::string> threads = train;
  threads.emplace_back("--ranks=2");
  expect_attributed(run_headroom(train), 1, {"code", "openblas_buffers", "training_data"});
  expect_attributed(run_headroom(threads), 2, {"code", "openblas_buffers", "thread_stacks"});
  expect_attributed(run_headroom_under_mpi(2, train), 2, {"openblas_buffers", "reduction_staging", "shared_memory"});
}

// Progress is what --quiet ends; a step a line is a result.
TEST(Results, OfAQuietRun_AreAllOnStdout) {
  const Outcome outcome = run_headroom(small("train", {"--quiet"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"  step ", "\n     1 ", "\n     2 ", "\nmedian step ", "\nthe system uses "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << outcome.out;
}

TEST(Results, ReportOnStdout_IsAloneThere) {
  for (const char* command : {"train", "ab"}) {
    const Outcome outcome = run_headroom(small(command, {"--json=-"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(nlohmann::json::accept(outcome.out)) << outcome.out;
  }
}

}  // namespace
}  // namespace headroom::testing
