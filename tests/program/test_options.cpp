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
  EXPECT_EQ(json["workload"], "gpt");
  EXPECT_EQ(json["branches"], "known");
  EXPECT_EQ(json["wrap"], "block");
  EXPECT_EQ(json["buffers"], "planned");
  EXPECT_EQ(json["communicators"], 2);
  EXPECT_EQ(json["accumulation"], "sharded");
  EXPECT_EQ(json["gathered"], "f32");
  EXPECT_EQ(json["reduced"], "f32");
  EXPECT_EQ(json["recompute"], "none");
  EXPECT_EQ(json["verify"], false);
  EXPECT_EQ(json["backward-prefetch"], "pre");
  EXPECT_EQ(json["forward-prefetch"], 1);
  EXPECT_EQ(json["limit-all-gathers"], 2);
  EXPECT_EQ(json["limit-reduce-scatters"], 2);
  EXPECT_EQ(json["keep-after-forward"], "none");
  EXPECT_EQ(json["deadline"], 60);
  EXPECT_EQ(json["device"], "host");
  EXPECT_TRUE(json["memory-limit"].is_null());
}

std::vector<Setting> settings_of(const nlohmann::ordered_json& json) {
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
  return settings;
}

// The table is the only place that knows an option: what it prints must be what it reads.
TEST(Options, ResolvedSpelling_ReadsBackAsTheSameConfig) {
  const Config config = make_config({{"limit-all-gathers", "off"},
                                     {"keep-after-forward", "h.0.attn,h.3.mlp"},
                                     {"lr", "0.005"},
                                     {"memory-limit", "3GiB"},
                                     {"deadline", "2.5"},
                                     {"executor", "seeded"},
                                     {"data", "/b"},
                                     {"data", "/a"},
                                     {"quiet", "true"},
                                     {"shard", "hybrid(2)"},
                                     {"wrap", "half"},
                                     {"buffers", "observed"},
                                     {"communicators", "1"},
                                     {"accumulation", "full"},
                                     {"gathered", "bf16"},
                                     {"reduced", "bf16"},
                                     {"recompute", "unit"},
                                     {"verify", "true"}});
  const nlohmann::ordered_json json = to_json(config);
  EXPECT_EQ(to_json(make_config(settings_of(json))), json);
  EXPECT_EQ(config.memory_limit_bytes, std::size_t{3} << 30);
  EXPECT_EQ(json["shard"], "hybrid(2)");
  EXPECT_EQ(json["wrap"], "half");
  EXPECT_EQ(json["verify"], true);
}

TEST(Options, EveryChoice_ReadsBackAsItself) {
  const std::vector<Setting> cases{{"shard", "full_shard"}, {"shard", "shard_grad_op"}, {"shard", "no_shard"},
                                   {"shard", "hybrid(3)"},  {"wrap", "block"},          {"wrap", "half"},
                                   {"wrap", "3"},           {"workload", "irregular"},  {"workload", "branching"},
                                   {"gathered", "bf16"},    {"reduced", "bf16"},        {"recompute", "unit"}};
  for (const Setting& setting : cases) {
    const nlohmann::ordered_json json = to_json(make_config({setting}));
    const nlohmann::ordered_json& value = json[setting.key];
    EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(), setting.value);
    EXPECT_EQ(to_json(make_config(settings_of(json))), json) << setting.key << "=" << setting.value;
  }
  EXPECT_TRUE(to_json(make_config({{"wrap", "3"}}))["wrap"].is_number());
}

TEST(Options, Strategy_DecidesTheGroups) {
  const auto ranks = [](const char* shard) { return make_config({{"shard", shard}}).shard_ranks(12); };
  EXPECT_EQ(ranks("full_shard"), 12);
  EXPECT_EQ(ranks("shard_grad_op"), 12);
  EXPECT_EQ(ranks("no_shard"), 1);
  EXPECT_EQ(ranks("hybrid(3)"), 3);
  const Config config = make_config({{"shard", "hybrid(3)"}, {"communicators", "1"}, {"deadline", "2.5"}});
  const GroupOptions groups = config.group_options(12);
  EXPECT_EQ(groups.shard_ranks, 3);
  EXPECT_TRUE(groups.one_for_both);
  EXPECT_EQ(groups.deadline, std::chrono::milliseconds(2500));
}

TEST(Options, ParameterOptions_HaveWhatWasGiven) {
  const Config config = make_config({{"seed", "7"},
                                     {"accumulate", "3"},
                                     {"shard", "shard_grad_op"},
                                     {"accumulation", "full"},
                                     {"gathered", "bf16"},
                                     {"reduced", "bf16"},
                                     {"buffers", "observed"},
                                     {"verify", "true"}});
  const ParameterOptions options = config.parameter_options();
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(options.micro_batches, 3);
  EXPECT_EQ(options.strategy, ShardStrategy::shard_grad_op);
  EXPECT_EQ(options.accumulation, Accumulation::full);
  EXPECT_EQ(options.gathered, DType::bf16);
  EXPECT_EQ(options.reduced, DType::bf16);
  EXPECT_EQ(options.buffers, Buffers::observed);
  EXPECT_TRUE(options.verify);
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

TEST(Options, Comm_ReadsItsSizes) {
  const CommOptions defaults = parse({"comm"}).comm;
  EXPECT_EQ(defaults.from_bytes, std::size_t{64} << 10);
  EXPECT_EQ(defaults.to_bytes, std::size_t{16} << 20);
  const CommOptions given = parse({"comm", "--from=1000", "--to", "2MiB", "--dtype=bf16", "--repeats=3"}).comm;
  EXPECT_EQ(given.from_bytes, 1000U);
  EXPECT_EQ(given.to_bytes, std::size_t{2} << 20);
  EXPECT_EQ(given.dtype, DType::bf16);
  EXPECT_EQ(given.repeats, 3);
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
