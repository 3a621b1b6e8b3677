#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace headroom::testing {
namespace {

const std::string kTiny = HEADROOM_SOURCE_DIR "/tests/gpt2_reference/tiny";

struct Case {
  std::vector<std::string> arguments;
  std::string says;  ///< A part of the error.
};

std::string text_of(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += argument + " ";
  return text;
}

/// Exit 2, and one line of error that has the parts every error has.
void expect_refused(const Outcome& outcome, const std::string& says) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.out << outcome.err;
  const std::vector<std::string> lines = error_lines(outcome);
  ASSERT_EQ(lines.size(), 1U) << outcome.err;
  EXPECT_NE(lines[0].find(says), std::string::npos) << lines[0] << "\nshould say: " << says;
  EXPECT_NE(lines[0].find(" (rank "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(": expected "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(", found "), std::string::npos) << lines[0];
  EXPECT_EQ(outcome.out, "");
}

/// A model that starts at once, should a case be let through.
std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> arguments{"train", "--layers=1", "--width=8", "--heads=1", "--seq=8", "--steps=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<Case> cases_of_numbers() {
  std::vector<Case> cases;
  for (const char* option : {"ranks", "layers", "width", "heads", "vocab", "positions", "seq", "micro-batch",
                             "accumulate", "steps", "limit-all-gathers", "limit-reduce-scatters"})
    for (const char* value : {"0", "-1", "", "x", "1.5", "nan", "1e3", " 1", "1 ", "99999999999999999999", "0x10"})
      cases.push_back({small({std::string("--") + option + "=" + value}), std::string("--") + option});
  for (const char* option : {"lr", "beta1", "beta2", "eps", "weight-decay", "clip", "deadline"})
    for (const char* value : {"-1", "", "x", "nan", "inf", "1e999", "0.5x"})
      cases.push_back({small({std::string("--") + option + "=" + value}), std::string("--") + option});
  for (const char* value : {"0", "-1", "", "1.5GiB", "2gb", "GiB", "99999999999GiB", "18446744073709551616"})
    cases.push_back({small({std::string("--memory-limit=") + value}), "--memory-limit"});
  for (const char* option : {"seed", "executor-seed"})
    for (const char* value : {"-1", "", "x", "18446744073709551616"})
      cases.push_back({small({std::string("--") + option + "=" + value}), std::string("--") + option});
  for (const char* value : {"-1", "", "x"})
    cases.push_back({small({std::string("--forward-prefetch=") + value}), "--forward-prefetch"});
  cases.push_back({small({"--beta1=1"}), "--beta1"});
  cases.push_back({small({"--eps=0"}), "--eps"});
  cases.push_back({small({"--deadline=0"}), "--deadline"});
  return cases;
}

std::vector<Case> cases_of_names() {
  std::vector<Case> cases;
  for (const char* option :
       {"device", "executor", "workload", "branches", "order", "shard", "wrap", "backward-prefetch", "buffers",
        "communicators", "host-threads", "accumulation", "gathered", "reduced", "recompute", "log-level"})
    for (const char* value : {"", "other", "NONE"})
      cases.push_back({small({std::string("--") + option + "=" + value}), std::string("--") + option});
  // What a later version may have is not there yet, and says so.
  for (const char* setting : {"device=cuda", "device=simulated", "host-threads=2", "communicators=3"})
    cases.push_back({small({std::string("--") + setting}), std::string("--") + setting});
  for (Case& later : cases) later.says = later.says.substr(0, later.says.find('='));
  for (const char* option : {"budget=1GiB", "fault=x", "checkpoint=/tmp/x", "save-every=1", "resume", "keep=2",
                             "sweep=seq=1", "no-such-option", "se=8"})
    cases.push_back({small({std::string("--") + option}), "an option that exists"});
  for (const char* value : {"", ",", "h.0,", "h.9", "h.0,,h.0", "ALL"})
    cases.push_back({small({std::string("--keep-after-forward=") + value}), "--keep-after-forward"});
  return cases;
}

std::vector<Case> cases_of_shapes() {
  return {
      {{"train", "--width=9", "--heads=2"}, "a divisor of --width 9"},
      {{"train", "--heads=7"}, "a divisor of --width 512"},
      {{"train", "--seq=16", "--positions=8"}, "--positions"},
      {{"train", "--width=1048576", "--layers=100000"}, "2^40 parameters"},
      {{"train", "--seq=1048576", "--micro-batch=1048576"}, "2^31 - 1 tokens"},
      {{"train", "--steps=1000000000", "--accumulate=65536", "--micro-batch=8"}, "2^46 windows"},
      {small({"--vocab=100"}), "--vocab 100"},
      {{"train", "--seq=500000", "--width=8", "--heads=1", "--layers=1"}, "at least --seq + 1"},
      {{"train", "--init", kTiny, "--seq=65"}, "--positions"},
      {{"train", "--init", kTiny, "--seq=8", "--layers=3"}, "--layers"},
  };
}

std::vector<Case> cases_of_commands() {
  return {
      {{}, "train, ab, schedule, comm"},
      {{"retrain"}, "retrain"},
      {{"--seq", "8", "train"}, "--seq"},
      {{"train", "more"}, "more"},
      {{"train", "ab"}, "ab"},
      {{"train", "--seq"}, "--seq"},
      {{"train", "--seq", "--quiet"}, "--seq"},
      {{"ab", "--a=seq"}, "--a"},
      {{"ab", "--a==8"}, "--a"},
      {{"ab", "--a=nothing=1"}, "--nothing"},
      {{"ab", "--b=seq=0"}, "--seq"},
      {{"ab", "--rounds=0"}, "--rounds"},
      {{"ab", "--rounds=x"}, "--rounds"},
      {{"schedule", "--units=0"}, "--units"},
      {{"schedule", "--units=-3"}, "--units"},
      {{"schedule", "--units=3", "--keep-after-forward=3"}, "--keep-after-forward"},
      {{"schedule", "--json=x"}, "an option that exists"},
      {{"schedule", "--workload=branching", "--branches=data"}, "--branches"},
      {{"comm", "--from=0"}, "--from"},
      {{"comm", "--to=1KiB"}, "--to"},
      {{"comm", "--to=1TiB"}, "--to"},
      {{"comm", "--dtype=f64"}, "--dtype"},
      {{"comm", "--repeats=0"}, "--repeats"},
      {{"comm", "--layers=2"}, "an option that exists"},
  };
}

/// Options that are fine alone.
std::vector<Case> cases_of_combinations() {
  const std::string gpt_only = ": expected --workload gpt, found another workload";
  std::vector<Case> cases{
      {small({"--shard=hybrid(3)", "--ranks=4"}),
       "expected groups that divide the world of 4 ranks, found groups of 3"},
      {small({"--shard=hybrid(4)", "--ranks=2"}),
       "expected groups that divide the world of 2 ranks, found groups of 4"},
      {small({"--shard=hybrid(2)"}), "expected full_shard or no_shard on one rank, found groups of 2"},
      {small({"--shard=hybrid(1)", "--ranks=2"}), "that is no_shard"},
      {{"schedule", "--shard=hybrid(2)", "--ranks=3"}, "expected groups that divide the world of 3 ranks"},
      {{"ab", "--ranks=2", "--b=shard=hybrid(3)"}, "expected groups that divide the world of 2 ranks"},
      {small({"--shard=no_shard", "--gathered=bf16"}), "--gathered (rank 0): expected f32 with --shard no_shard"},
      {small({"--shard=no_shard", "--keep-after-forward=h.0"}), "--keep-after-forward (rank 0): expected none with"},
      {small({"--wrap=2"}), "--wrap (rank 0): expected at most --layers 1 blocks a unit, found 2"},
      {{"train", "--init", kTiny, "--seq=8", "--wrap=3"}, "expected at most --layers 2 blocks a unit, found 3"},
      {small({"--wrap=half", "--keep-after-forward=h.0"}), "units of the model (embedding ... h.0.mlp), found 'h.0'"},
      {small({"--workload=irregular", "--keep-after-forward=h.0"}), "--keep-after-forward"},
      {small({"--workload=irregular", "--wrap=half"}), "--wrap (rank 0)" + gpt_only},
      {small({"--workload=branching", "--export=x"}), "--export (rank 0)" + gpt_only},
      {{"train", "--workload=irregular", "--init", kTiny, "--seq=8"}, "--init (rank 0)" + gpt_only},
      {small({"--branches=learned"}), "--branches (rank 0): expected --workload branching"},
      {small({"--workload=irregular", "--branches=data"}), "--branches (rank 0): expected --workload branching"},
  };
  for (const char* value : {"hybrid", "hybrid()", "hybrid(0)", "hybrid(x)", "hybrid(2", "hybrid(-2)", "hybrid(2) "})
    cases.push_back({small({std::string("--shard=") + value}), "no_shard or hybrid(N)"});
  for (const char* value : {"0", "-1", "1.5", "blocks"})
    cases.push_back(
        {small({std::string("--wrap=") + value}), "--wrap (rank 0): expected block, half, or a whole number"});
  return cases;
}

std::vector<Case> cases_of_files(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder.path("none"));
  std::filesystem::create_directory(folder.path("links"));
  std::filesystem::create_symlink(folder.file("text", std::string(100, 'a')), folder.path("links/text"));
  std::filesystem::create_symlink("loop", folder.path("loop"));
  const std::string beyond = folder.file("beyond.bin", std::string(100, '\x01') + "\xFF\xFF");
  const std::string huge = folder.file("huge", "");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 42);
  const std::string hostile = folder.path("hostile");
  std::filesystem::create_directory(hostile);
  std::filesystem::copy_file(kTiny + "/config.json", hostile + "/config.json");
  static_cast<void>(folder.file("hostile/model.safetensors", "not a model"));
  return {
      {small({"--data="}), "--data"},
      {small({"--data", folder.path("missing")}), folder.path("missing")},
      {small({"--data", folder.path("loop")}), folder.path("loop")},
      {small({"--data", folder.path("none")}), "regular files in the folder"},
      {small({"--data", folder.path("links")}), "only 1 links"},
      {small({"--data", "/dev/null"}), "/dev/null"},
      {small({"--data", folder.file("empty", "")}), "at least --seq + 1"},
      {small({"--data", folder.file("short", "12345678")}), "at least --seq + 1"},
      {small({"--data", folder.file("odd.bin", "123456789012345678901")}), "even number"},
      {small({"--data", beyond, "--vocab=300"}), "token 65535 at byte 100"},
      {small({"--data", huge}), "memory"},
      {{"train", "--init", folder.path("missing")}, "--init"},
      {{"train", "--init", folder.path("text")}, "--init"},
      {{"train", "--init", folder.path("none")}, "config.json"},
      {{"train", "--init", folder.path("loop")}, "--init"},
      {{"train", "--init", std::string(5000, 'x')}, "--init"},
      {{"train", "--init", hostile, "--seq=8"}, "model.safetensors"},
      {small({"--json", folder.path()}), "--json"},
      {small({"--json", folder.path("missing/report.json")}), "--json"},
      {small({"--trace", folder.path("text/trace.json")}), "--trace"},
      {small({"--events", "/proc/headroom/events"}), "--events"},
      {small({"--snapshot", "/proc/headroom/x"}), "--snapshot"},
      {small({"--json", folder.path("same"), "--trace", folder.path("same")}), "another file"},
      {small({"--events", folder.path("same"), "--report", folder.path("./same")}), "another file"},
      {small({"--events", folder.path("x{rank}"), "--trace", folder.path("x0")}), "another file"},
      {small({"--export", folder.path("text")}), "--export"},
      {small({"--export", "/proc/headroom"}), "--export"},
      {small({"--export", folder.path("loop")}), "--export"},
      {small({"--export", std::string(5000, 'x')}), "--export"},
  };
}

void expect_all_refused(const std::vector<Case>& cases, const std::vector<std::string>& more) {
  for (const Case& bad : cases) {
    std::vector<std::string> arguments = bad.arguments;
    if (!arguments.empty()) arguments.insert(arguments.end(), more.begin(), more.end());
    SCOPED_TRACE(text_of(arguments));
    expect_refused(run_headroom(arguments), bad.says);
  }
}

TEST(BadInput, Numbers_AreRefusedByName) { expect_all_refused(cases_of_numbers(), {}); }

TEST(BadInput, NamesAndUnknownOptions_AreRefused) { expect_all_refused(cases_of_names(), {}); }

TEST(BadInput, Shapes_AreRefused) { expect_all_refused(cases_of_shapes(), {}); }

TEST(BadInput, Commands_AreRefused) { expect_all_refused(cases_of_commands(), {}); }

TEST(BadInput, OptionsThatDoNotGoTogether_AreRefused) { expect_all_refused(cases_of_combinations(), {}); }

TEST(BadInput, Files_AreRefused) {
  const TemporaryFolder folder;
  expect_all_refused(cases_of_files(folder), {});
}

TEST(BadInput, OfRanksAsThreads_IsOneError) {
  const TemporaryFolder folder;
  expect_all_refused(cases_of_files(folder), {"--ranks=2"});
  expect_all_refused(cases_of_shapes(), {"--ranks=2"});
}

// One of each stage: parsing, resolving, reading, opening; the other tests walk through all of them.
TEST(BadInput, UnderMpi_IsOneErrorOfAllRanks) {
  const TemporaryFolder folder;
  const std::vector<Case> files = cases_of_files(folder);
  std::vector<Case> cases{{small({"--seq=0"}), "--seq"}, {small({"--ranks=2"}), "--ranks"}};
  cases.push_back({small({"--shard=hybrid(3)"}), "groups that divide the world of 2 ranks"});
  cases.insert(cases.end(), {files[1], files[9], files[14], files[16], files[18], files.back()});
  for (const Case& bad : cases) {
    SCOPED_TRACE(text_of(bad.arguments));
    expect_refused(run_headroom_under_mpi(2, bad.arguments), bad.says);
  }
}

TEST(BadInput, OptionsThatDifferBetweenRanks_AreOneErrorWithBothValuesAndTheRank) {
  expect_refused(run_headroom_ranks({small({"--lr=0.1"}), small({"--lr=0.2"})}),
                 "--lr (rank 1): expected 0.1 as on rank 0, found 0.2");
  expect_refused(run_headroom_ranks({small({}), small({}), small({"--order=sequential"})}),
                 "--order (rank 2): expected \"shuffled\" as on rank 0, found \"sequential\"");
  expect_refused(run_headroom_ranks({small({}), {"schedule"}}), "command (rank 1): expected \"train\"");
  expect_refused(run_headroom_ranks({small({}), {"--help"}}), "command (rank 1): expected \"train\"");
}

TEST(BadInput, OfOneRankAlone_IsItsErrorOnAll) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("trace1"));  // A folder in the place of rank 1's file.
  const std::vector<std::string> trace = small({"--trace", folder.path("trace{rank}")});
  expect_refused(run_headroom_ranks({trace, trace}), "trace1 (rank 1): expected a file, found a folder");
  std::vector<std::string> threads = trace;
  threads.emplace_back("--ranks=2");
  expect_refused(run_headroom(threads), "trace1 (rank 1): expected a file, found a folder");
  expect_refused(run_headroom_ranks({small({}), small({"--seq=x"})}), "--seq (rank 1)");
  expect_refused(run_headroom_ranks({small({"--heads=3"}), small({})}), "--heads (rank 0)");
}

// The file that is checked is the one that will be written.
TEST(Outputs, OfAnArm_AreCheckedUnderTheirOwnNames) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("x.b.json"));
  expect_refused(run_headroom({"ab", "--trace", folder.path("x.json")}), "x.b.json (rank 0): expected a file, found");
  expect_refused(run_headroom({"ab", "--events", folder.path("y"), "--json", folder.path("y.a")}), "another file");
}

TEST(Outputs, ThatExist_AreNotTouchedByTheCheck) {
  const TemporaryFolder folder;
  const std::string kept = folder.file("kept.json", "older");
  expect_refused(run_headroom(small({"--json", kept, "--trace", "/proc/headroom/x"})), "--trace");
  EXPECT_EQ(read_file(kept), "older");
  expect_refused(run_headroom(small({"--json", folder.path("new.json"), "--trace", "/proc/headroom/x"})), "--trace");
  EXPECT_FALSE(std::filesystem::exists(folder.path("new.json")));
}

TEST(Outputs, LinksToNothing_AreLeftAsTheyWere) {
  const TemporaryFolder folder;
  const std::string link = folder.path("link"), chain = folder.path("chain");
  std::filesystem::create_symlink("target", link);
  std::filesystem::create_symlink(link, chain);
  for (const std::string& path : {link, chain}) {
    expect_refused(run_headroom(small({"--json", path, "--trace", "/proc/headroom/x"})), "--trace");
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    EXPECT_FALSE(std::filesystem::exists(folder.path("target")));
  }
  std::filesystem::create_symlink("missing/target", folder.path("broken"));
  expect_refused(run_headroom(small({"--json", folder.path("broken")})), "--json");
}

}  // namespace
}  // namespace headroom::testing
