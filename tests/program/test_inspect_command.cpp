#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headroom::testing {
namespace {

/// A folder with the recording of a run of milliseconds.
struct Recording {
  explicit Recording(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"train",    "--layers=2",      "--width=16", "--heads=2", "--vocab=128",
                                       "--seq=12", "--micro-batch=2", "--steps=3",  "--quiet",   "--events",
                                       path};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run_headroom(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  TemporaryFolder folder;
  std::string path = folder.path("events.hrm");
};

TEST(InspectCommand, Recording_IsShownAsTextAndAsJson) {
  const Recording recording({"--ranks=2"});
  const Outcome text = run_headroom({"inspect", recording.path, "--at=2/backward/h.1", "--units"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part :
       {"of h.1", "parameter_full.current", "gradient_full.computing", "separate", "stand together", "reserved"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in\n" << text.out;
  }
  for (const char* clock : {"issue", "device"}) {
    const Outcome outcome = run_headroom({"inspect", recording.path, "--clock", clock, "--json=-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.at("clock"), clock);
    EXPECT_EQ(json.at("instant").at("event"), json.at("peak").at("event"));
    EXPECT_EQ(json.at("device").is_null(), std::string(clock) == "issue");
    std::size_t sum = 0;
    for (const auto& entry : json.at("instant").at("categories").items()) sum += entry.value().get<std::size_t>();
    EXPECT_EQ(sum, json.at("instant").at("allocated").get<std::size_t>());
    EXPECT_EQ(json.at("units").size(), 3U);
  }
}

TEST(InspectCommand, OneRank_SharesTheStorageOfShardAndFullSet) {
  const Recording recording({});
  const Outcome outcome = run_headroom({"inspect", recording.path, "--json=-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& unit : json.at("units")) EXPECT_EQ(unit.at("storage"), "shared");
  int shared = 0;
  for (const auto& block : json.at("peak").at("blocks")) {
    shared += block.at("storage") == "shared" && block.at("category") == "parameter_shard" ? 1 : 0;
  }
  EXPECT_EQ(shared, 3);
}

TEST(InspectCommand, BadInput_IsOneErrorWithItsCode) {
  const Recording recording({});
  const std::string whole = read_file(recording.path);
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* says;
  };
  const std::string torn = recording.folder.file("torn.hrm", whole.substr(0, whole.size() / 2));
  const std::string empty = recording.folder.file("empty.hrm", "");
  const std::string other = recording.folder.file("other.hrm", std::string(4096, '\0'));
  const std::vector<Case> cases{{{torn}, 65, "offset"},
                                {{empty}, 65, "offset"},
                                {{other}, 65, "offset"},
                                {{recording.folder.path("none.hrm")}, 2, "none.hrm"},
                                {{recording.path, "--at=9/backward/h.0"}, 2, "steps 1 to 3"},
                                {{recording.path, "--at=somewhere"}, 2, "STEP/PHASE/UNIT"},
                                {{recording.path, "--steps=3..2"}, 2, "expected two step numbers"},
                                {{recording.path, "--clock=wall"}, 2, "--clock"},
                                {{recording.path, "--report", recording.path}, 2, "another file than that of EVENTS"}};
  for (const Case& bad : cases) {
    std::vector<std::string> arguments{"inspect"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const Outcome outcome = run_headroom(arguments);
    EXPECT_EQ(outcome.exit_code, bad.exit_code) << bad.says;
    ASSERT_EQ(error_lines(outcome).size(), 1U) << bad.says;
    EXPECT_NE(error_lines(outcome)[0].find(bad.says), std::string::npos) << error_lines(outcome)[0];
    EXPECT_TRUE(outcome.out.empty());
  }
  EXPECT_EQ(run_headroom({"inspect"}).exit_code, 2);
  EXPECT_EQ(run_headroom({"replay", recording.path, "--json", recording.path}).exit_code, 2);
  EXPECT_EQ(read_file(recording.path), whole);
}

}  // namespace
}  // namespace headroom::testing
