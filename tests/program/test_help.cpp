#include "program/subprocess.hpp"

#include <gtest/gtest.h>

namespace headroom::testing {
namespace {

TEST(Help, OfTheProgram_ListsCommandsAndAnExample) {
  const Outcome outcome = run_headroom({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"train", "ab", "schedule", "comm", "inspect", "--version", "Example"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
}

TEST(Help, OfEachCommand_HasItsOptionsAndAnExample) {
  struct Case {
    const char* command;
    std::vector<const char*> parts;
  };
  for (const Case& help : {Case{"train", {"--layers", "--json", "--keep-after-forward", "--shard", "hybrid(N)"}},
                           Case{"ab", {"--a ", "--b ", "--rounds", "--allow-many", "--json"}},
                           Case{"schedule", {"--units", "--first", "--backward-prefetch", "--wrap"}},
                           Case{"comm", {"--from", "--to", "--dtype", "--repeats", "--ranks", "--json"}},
                           Case{"inspect", {"EVENTS", "--at", "--clock", "--units", "--json"}}}) {
    const Outcome outcome = run_headroom({help.command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find(std::string("headroom ") + help.command), std::string::npos);
    EXPECT_NE(outcome.out.find("Example"), std::string::npos);
    for (const char* part : help.parts) EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  }
}

TEST(Help, Version_NamesTheDevicesOfThisBuild) {
  const Outcome outcome = run_headroom({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("headroom ")) << outcome.out;
  EXPECT_NE(outcome.out.find("devices: host"), std::string::npos) << outcome.out;
}

TEST(Help, UnderMpi_IsPrintedOnce) {
  const Outcome outcome = run_headroom_under_mpi(2, {"--version"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run_headroom({"--version"}).out);
}

TEST(Help, OutputThatIsLost_IsExit74) {
  const Outcome outcome = run_process({"sh", "-c", HEADROOM_BINARY_DIR "/headroom schedule > /dev/full"});
  EXPECT_EQ(outcome.exit_code, 74);
  EXPECT_EQ(error_lines(outcome).size(), 1U) << outcome.err;
}

}  // namespace
}  // namespace headroom::testing
