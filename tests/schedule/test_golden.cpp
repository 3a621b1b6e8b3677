#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "schedule/schedule_tools.hpp"

namespace headroom::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  std::istringstream stream(name);
  for (std::string word; std::getline(stream, word, '_');) words.push_back(word);
  return words;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// The schedule that a golden text's name asks for.
Schedule plan_named(std::string name) {
  PlanInput input = equal_units(3);
  PrefetchOptions options;
  BackwardPrefetch backward = BackwardPrefetch::none;
  const std::map<std::string, BackwardPrefetch> prefetches = {
      {"none", BackwardPrefetch::none}, {"pre", BackwardPrefetch::pre}, {"post", BackwardPrefetch::post}};
  const std::map<std::string, ShardStrategy> strategies = {{"shard-grad-op", ShardStrategy::shard_grad_op},
                                                           {"no-shard", ShardStrategy::no_shard},
                                                           {"hybrid", ShardStrategy::hybrid}};
  replace(name, "shard_grad_op", "shard-grad-op");
  replace(name, "no_shard", "no-shard");
  replace(name, "keep_last", "keep-last");
  for (const std::string& word : words_of(name)) {
    const auto number = [&](std::size_t prefix) { return std::stoi(word.substr(prefix)); };
    if (prefetches.count(word) != 0) {
      backward = prefetches.at(word);
    } else if (strategies.count(word) != 0) {
      input.strategy = strategies.at(word);
    } else if (word.rfind("forward", 0) == 0) {
      options.forward_prefetch = number(7);
    } else if (word.rfind("gathers", 0) == 0) {
      options.limit_all_gathers = number(7);
    } else if (word.rfind("reduces", 0) == 0) {
      options.limit_reduce_scatters = number(7);
    } else if (word.rfind("accumulate", 0) == 0) {
      input.micro_batches = number(10);
    } else if (word == "full") {
      input.accumulation = Accumulation::full;
    } else if (word == "keep-last") {
      options.keep = PrefetchOptions::Keep::last;
    } else if (word == "first") {
      input.first_step = true;
    } else {
      throw std::logic_error("golden text '" + name + "': no option '" + word + "'");
    }
  }
  return prefetch_policy(backward, options)->plan(input);
}

TEST(Golden, EveryText_IsReproduced) {
  std::vector<std::string> compared;
  for (const auto& entry : fs::directory_iterator(fs::path(HEADROOM_SOURCE_DIR) / "tests/schedule/golden")) {
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    const Schedule schedule = plan_named(name);
    EXPECT_EQ(schedule.text(), read(entry.path()));
    EXPECT_NO_THROW(schedule.validate());
    compared.push_back(name);
  }
  std::sort(compared.begin(), compared.end());
  EXPECT_EQ(compared, (std::vector<std::string>{"no_shard_reduces2", "none", "post", "post_accumulate2_full", "pre",
                                                "pre_forward1", "pre_forward1_reduces2_keep_last", "pre_gathers2",
                                                "pre_gathers2_first", "pre_hybrid_accumulate2", "pre_shard_grad_op"}));
}

TEST(Golden, Copies_AreTheJudgesOwn) {
  const fs::path judges = fs::path(HEADROOM_SOURCE_DIR) / "../shared/judges/golden";
  if (!fs::is_directory(judges)) GTEST_SKIP() << "no " << judges << " here";
  for (const auto& entry : fs::directory_iterator(judges)) {
    EXPECT_EQ(read(entry.path()),
              read(fs::path(HEADROOM_SOURCE_DIR) / "tests/schedule/golden" / entry.path().filename()))
        << entry.path();
  }
}

}  // namespace
}  // namespace headroom::testing
