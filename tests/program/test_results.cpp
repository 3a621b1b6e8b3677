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

// Progress is what --quiet ends; a step a line is a result.
TEST(Results, OfAQuietRun_AreAllOnStdout) {
  const Outcome outcome = run_headroom(small("train", {"--quiet"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"  step ", "\n     1 ", "\n     2 ", "\nmedian step "})
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
