#include "io/hf_gpt2.hpp"
#include "options/command_line.hpp"
#include "options/config.hpp"
#include "options/option_table.hpp"

#include <gtest/gtest.h>

namespace headroom::bench {
namespace {

std::string refusal(const std::vector<Setting>& settings) {
  try {
    static_cast<void>(make_config(settings));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

CommandLine parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "headroom");
  return parse_command_line(arguments);
}

TEST(Options, WithoutArguments_HaveTheContractsDefaults) {
  const nlohmann::ordered_json json = to_json(make_config({}));
  EXPECT_EQ(json["layers"], 8);
  EXPECT_EQ(json["width"], 512);
  EXPECT_EQ(json["heads"], 8);
  EXPECT_EQ(json["vocab"], 256);
  EXPECT_EQ(json["positions"], 256);
  EXPECT_EQ(json["seq"], 256);
  EXPECT_EQ(json["micro-batch"], 4);
  EXPECT_EQ(json["accumulate"], 1);
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["seed"], 1);
  EXPECT_EQ(json["lr"], 3e-4);
  EXPECT_EQ(json["beta1"], 0.9);
  EXPECT_EQ(json["beta2"], 0.95);
  EXPECT_EQ(json["eps"], 1e-8);
  EXPECT_EQ(json["weight-decay"], 0.1);
  EXPECT_EQ(json["clip"], 1.0);
  EXPECT_EQ(json["order"], "shuffled");
  EXPECT_EQ(json["shard"], "full_shard");
  EXPECT_EQ(json["backward-prefetch"], "pre");
  EXPECT_EQ(json["forward-prefetch"], 1);
  EXPECT_EQ(json["limit-all-gathers"], 2);
  EXPECT_EQ(json["limit-reduce-scatters"], 2);
  EXPECT_EQ(json["keep-after-forward"], "none");
  EXPECT_EQ(json["deadline"], 60);
  EXPECT_EQ(json["device"], "host");
  EXPECT_TRUE(json["memory-limit"].is_null());
}

// The table is the only place that knows an option: what it prints must be what it reads.
TEST(Options, ResolvedSpelling_ReadsBackAsTheSameConfig) {
  const Config config = make_config({{"limit-all-gathers", "off"},
                                     {"keep-after-forward", "h.0,h.3"},
                                     {"lr", "0.005"},
                                     {"memory-limit", "3GiB"},
                                     {"deadline", "2.5"},
                                     {"executor", "seeded"},
                                     {"data", "/b"},
                                     {"data", "/a"},
                                     {"quiet", "true"}});
  const nlohmann::ordered_json json = to_json(config);
  std::vector<Setting> settings;
  for (const auto& item : json.items()) {
    if (item.value().is_null()) continue;
    if (item.value().is_array()) {
      for (const auto& element : item.value()) settings.push_back({item.key(), element.get<std::string>()});
    } else {
      settings.push_back(
          {item.key(), item.value().is_string() ? item.value().get<std::string>() : item.value().dump()});
    }
  }
  EXPECT_EQ(to_json(make_config(settings)), json);
  EXPECT_EQ(config.memory_limit_bytes, std::size_t{3} << 30);
}

TEST(Options, GivenTwice_TakeTheLastValue) {
  const CommandLine line = parse({"train", "--seq", "8", "--quiet", "--seq=16", "--quiet"});
  EXPECT_EQ(line.config.seq, 16);
  EXPECT_TRUE(line.config.quiet);
  EXPECT_EQ(line.config.model.positions, 16);
}

TEST(Options, DataGivenTwice_Collects) {
  const CommandLine line = parse({"train", "--data", "/x", "--data", "/y"});
  EXPECT_EQ(line.config.data, (std::vector<std::string>{"/x", "/y"}));
}

TEST(Options, With_ReplacesWhatWasGivenAndResolvesAgain) {
  const Config base = make_config({{"seq", "64"}, {"data", "/x"}, {"data", "/y"}});
  EXPECT_EQ(base.model.positions, 64);
  const Config other = base.with({{"seq", "128"}, {"data", "/z"}});
  EXPECT_EQ(other.model.positions, 128);
  EXPECT_EQ(other.data, std::vector<std::string>{"/z"});
  EXPECT_EQ(base.with({{"backward-prefetch", "post"}}).data, base.data);
}

TEST(Options, With_KeepsTheRanksOfTheLauncher) {
  Config base = make_config({});
  base.ranks = 3;
  EXPECT_EQ(base.with({{"seq", "64"}}).ranks, 3);
}

TEST(Options, With_BadValueHasTheTextOfTheCommandLine) {
  const Config base = make_config({});
  std::string text;
  try {
    static_cast<void>(base.with({{"seq", "zero"}}));
  } catch (const InvalidInput& error) {
    text = error.what();
  }
  EXPECT_EQ(text, refusal({{"seq", "zero"}}));
  EXPECT_NE(text.find("--seq"), std::string::npos);
}

TEST(Options, Ab_ReadsItsArms) {
  const CommandLine line = parse({"ab", "--a", "seq=8  lr=0.1", "--b", "backward-prefetch=post", "--rounds", "3"});
  ASSERT_EQ(line.ab.a.size(), 2U);
  EXPECT_EQ(line.ab.a[1].key, "lr");
  EXPECT_EQ(line.ab.a[1].value, "0.1");
  EXPECT_EQ(line.ab.rounds, 3);
  EXPECT_FALSE(line.ab.allow_many);
  EXPECT_EQ(parse({"ab", "--a", "seq=8", "--a", ""}).ab.a.size(), 0U);
}

TEST(Options, Init_SetsTheModelsShape) {
  const std::string folder = HEADROOM_SOURCE_DIR "/tests/gpt2_reference/tiny";
  const Config config = make_config({{"init", folder}, {"seq", "48"}});
  EXPECT_EQ(config.model, (ModelShape{2, 32, 2, 256, 64}));
  EXPECT_NE(refusal({{"init", folder}, {"seq", "65"}}).find("--positions"), std::string::npos);
  EXPECT_NE(refusal({{"init", folder}, {"seq", "48"}, {"width", "64"}}).find("--width"), std::string::npos);
  EXPECT_EQ(refusal({{"init", folder}, {"seq", "48"}, {"width", "32"}}), "");
}

TEST(Options, EveryKey_HasHelpAndAppearsInTheReport) {
  const nlohmann::ordered_json json = to_json(make_config({}));
  const std::string help = parse({"train", "--help"}).text;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(json.contains(option.key)) << option.key;
    EXPECT_NE(help.find(std::string("--") + option.key), std::string::npos) << option.key;
  }
}

}  // namespace
}  // namespace headroom::bench
