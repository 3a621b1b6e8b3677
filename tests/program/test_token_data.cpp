#include "data/made_text.hpp"
#include "data/permutation.hpp"
#include "data/token_data.hpp"
#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

namespace headroom::bench {
namespace {

using headroom::testing::TemporaryFolder;

std::string counting_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

std::string refusal(const DataOptions& options) {
  try {
    static_cast<void>(TokenData::load(options));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Permutation, AnyCountAndKey_IsABijection) {
  for (const std::uint64_t count : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 255U, 256U, 257U, 1000U, 65'537U}) {
    for (const std::uint64_t key : {0U, 1U, 77U}) {
      std::vector<bool> seen(count, false);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t image = permute(i, count, key);
        ASSERT_LT(image, count);
        ASSERT_FALSE(seen[image]) << "count " << count << " key " << key << " index " << i;
        seen[image] = true;
      }
    }
  }
}

TEST(Permutation, OtherKey_IsAnotherOrder) {
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += permute(i, 1000, 1) == permute(i, 1000, 2) ? 1 : 0;
  EXPECT_LT(same, 20);
}

TEST(TokenData, Sequential_SampleIsItsWindowAndTargetsAreOneLater) {
  const TemporaryFolder folder;
  const TokenData data = TokenData::load({{folder.file("text", counting_text(25))}, 8, 256, Order::sequential, 1});
  EXPECT_EQ(data.length(), 25);
  ASSERT_EQ(data.window_count(), 3);
  std::vector<std::int32_t> tokens(4 * 8), targets(4 * 8);
  data.batch(1, 4, tokens, targets);  // Windows 1, 2, 0, 1.
  for (int row = 0; row < 4; ++row) {
    for (int i = 0; i < 8; ++i) {
      const auto at = static_cast<std::size_t>(row * 8 + i);
      EXPECT_EQ(tokens[at], (1 + row) % 3 * 8 + i);
      EXPECT_EQ(targets[at], (1 + row) % 3 * 8 + i + 1);
    }
  }
}

TEST(TokenData, PartialWindow_IsNotUsed) {
  const TemporaryFolder folder;
  const auto windows = [&](std::size_t bytes) {
    return TokenData::load({{folder.file("text", counting_text(bytes))}, 8, 256, Order::sequential, 1}).window_count();
  };
  EXPECT_EQ(windows(9), 1);
  EXPECT_EQ(windows(16), 1);
  EXPECT_EQ(windows(17), 2);
}

TEST(TokenData, Shuffled_EachEpochTakesEveryWindowOnceInANewOrder) {
  const TemporaryFolder folder;
  const TokenData data = TokenData::load({{folder.file("text", counting_text(801))}, 8, 256, Order::shuffled, 5});
  ASSERT_EQ(data.window_count(), 100);
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::int64_t k = 0; k < 100; ++k) order.push_back(data.window_of(epoch * 100 + k));
    epochs.push_back(order);
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(100);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
    for (std::int64_t before = 0; before < epoch; ++before)
      EXPECT_NE(epochs[static_cast<std::size_t>(before)], epochs.back());
  }
}

TEST(TokenData, Shuffled_DependsOnTheSeedOnly) {
  const TemporaryFolder folder;
  const std::string file = folder.file("text", counting_text(801));
  const auto order = [&](std::uint64_t seed) {
    const TokenData data = TokenData::load({{file}, 8, 256, Order::shuffled, seed});
    std::vector<std::int64_t> windows;
    for (std::int64_t k = 0; k < 100; ++k) windows.push_back(data.window_of(k));
    return windows;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

// However the global batch of 12 is cut into micro-batches and ranks.
TEST(SampleOrder, SamplesOfAStep_DependOnTheGlobalBatchOnly) {
  struct Cut {
    std::int64_t ranks, accumulate, micro_batch;
  };
  for (const Cut cut : {Cut{1, 1, 12}, Cut{2, 1, 6}, Cut{3, 2, 2}, Cut{4, 3, 1}, Cut{1, 12, 1}}) {
    Config config;
    config.ranks = static_cast<int>(cut.ranks);
    config.accumulate = cut.accumulate;
    config.micro_batch = cut.micro_batch;
    std::vector<std::int64_t> samples;
    for (std::int64_t micro = 0; micro < cut.accumulate; ++micro)
      for (int rank = 0; rank < config.ranks; ++rank)
        for (std::int64_t row = 0; row < cut.micro_batch; ++row)
          samples.push_back(first_sample(config, 5, micro, rank) + row);
    std::vector<std::int64_t> expected(12);
    std::iota(expected.begin(), expected.end(), 5 * 12);
    EXPECT_EQ(samples, expected) << cut.ranks << " " << cut.accumulate << " " << cut.micro_batch;
  }
}

TEST(TokenData, BinFile_IsLittleEndian) {
  const TemporaryFolder folder;
  const std::string file = folder.file("tokens.bin", std::string("\x01\x02\xFF\xC0\x00\x00", 6));
  const TokenData data = TokenData::load({{file}, 2, 65'536, Order::sequential, 1});
  std::vector<std::int32_t> tokens(2), targets(2);
  data.batch(0, 1, tokens, targets);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{0x0201, 0xC0FF}));
  EXPECT_EQ(targets, (std::vector<std::int32_t>{0xC0FF, 0}));
}

TEST(TokenData, Folder_IsItsRegularFilesSortedWithoutLinksAndFolders) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("data"));
  std::filesystem::create_directory(folder.path("data/below"));
  static_cast<void>(folder.file("data/below/c", "cccc"));
  static_cast<void>(folder.file("data/b", "bb"));
  static_cast<void>(folder.file("data/a", "aaa"));
  std::filesystem::create_symlink("a", folder.path("data/z"));
  const TokenData data = TokenData::load({{folder.path("data")}, 4, 256, Order::sequential, 1});
  std::vector<std::int32_t> tokens(4), targets(4);
  EXPECT_EQ(data.length(), 5);
  data.batch(0, 1, tokens, targets);
  EXPECT_EQ(targets, (std::vector<std::int32_t>{'a', 'a', 'b', 'b'}));
}

TEST(TokenData, SeveralPaths_AreOneRunInTheirOrder) {
  const TemporaryFolder folder;
  const std::string b = folder.file("b", "bb"), a = folder.file("a", "a");
  const TokenData data = TokenData::load({{b, a}, 2, 256, Order::sequential, 1});
  std::vector<std::int32_t> tokens(2), targets(2);
  data.batch(0, 1, tokens, targets);
  EXPECT_EQ(targets, (std::vector<std::int32_t>{'b', 'a'}));
}

TEST(TokenData, Entropy_IsThatOfTheFrequencies) {
  const TemporaryFolder folder;
  const auto entropy = [&](const std::string& text) {
    return TokenData::load({{folder.file("text", text)}, 1, 256, Order::sequential, 1}).unigram_entropy_nats();
  };
  EXPECT_DOUBLE_EQ(entropy("aaaa"), 0);
  EXPECT_DOUBLE_EQ(entropy("abab"), std::log(2.0));
  EXPECT_NEAR(entropy("aaab"), -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
}

TEST(TokenData, MadeText_IsAlwaysTheSameAndHasStructure) {
  EXPECT_EQ(made_text(5000), made_text(5000));
  EXPECT_EQ(made_text(5000), made_text(6000).substr(0, 5000));
  const TokenData data = TokenData::load({{}, 256, 256, Order::shuffled, 1});
  EXPECT_GE(data.length(), 300'000);
  EXPECT_GT(data.unigram_entropy_nats(), 2.0);
  EXPECT_LT(data.unigram_entropy_nats(), 3.5);
}

TEST(SharedTokenData, EqualOptions_AreLoadedOnce) {
  const TemporaryFolder folder;
  const std::string text = folder.file("text", "abcdefgh");
  SharedTokenData shared;
  const DataOptions options{{text}, 2, 256, Order::shuffled, 1};
  const DataOptions other{{text}, 4, 256, Order::shuffled, 1};
  const auto data = shared.load(options);
  EXPECT_EQ(shared.load(options), data);
  EXPECT_NE(shared.load(other), data);
  EXPECT_EQ(shared.load(other)->window_count(), 1);
  EXPECT_THROW(static_cast<void>(shared.load({{folder.path("none")}, 2, 256, Order::shuffled, 1})), InvalidInput);
  EXPECT_EQ(shared.load(options), data);
}

TEST(TokenData, TokenBeyondTheVocabulary_IsRefusedWithFileAndOffset) {
  const TemporaryFolder folder;
  const std::string text = folder.file("text", "aaaaZZ{a");
  EXPECT_NE(refusal({{text}, 2, 123, Order::shuffled, 1}).find(text), std::string::npos);
  EXPECT_NE(refusal({{text}, 2, 123, Order::shuffled, 1}).find("token 123 at byte 6"), std::string::npos);
  const std::string bin = folder.file("t.bin", std::string("\x01\x00\x02\x00\x00\x01", 6));
  EXPECT_NE(refusal({{bin}, 2, 256, Order::shuffled, 1}).find("token 256 at byte 4"), std::string::npos);
  EXPECT_NE(refusal({{}, 2, 100, Order::shuffled, 1}).find("--vocab 100"), std::string::npos);
}

}  // namespace
}  // namespace headroom::bench
