#include <headroom/layout.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace headroom {
namespace {

TEST(FlatLayout, AnyShapesAndWorld_ShardsTileEveryParameterOnce) {
  const unsigned seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const auto draw = [&random](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
    const int world = draw(7);
    std::vector<ParameterSpec> specs;
    for (int i = 0, count = draw(6); i < count; ++i) {
      specs.push_back({std::to_string(i), {draw(40), draw(9)}, {}, draw(3) == 1});
    }
    const FlatLayout layout = FlatLayout::make("unit", specs, world);
    EXPECT_EQ(layout.padded_numel, layout.shard_numel * world);
    EXPECT_EQ(layout.shard_numel % 16, 0);
    EXPECT_EQ(layout.frozen.begin, layout.trainable.padded_numel);
    EXPECT_EQ(layout.shard_numel, layout.trainable.shard_numel + layout.frozen.shard_numel);
    std::vector<std::int64_t> next(specs.size(), 0);
    for (int rank = 0; rank < world; ++rank) {
      for (const FlatLayout::Range& range : layout.ranges(rank)) {
        const auto i = static_cast<std::size_t>(range.parameter);
        EXPECT_EQ(range.begin, next[i]) << "a gap or an overlap in parameter " << i << " at rank " << rank;
        next[i] += range.numel;
        const FlatLayout::Group& group = specs[i].frozen ? layout.frozen : layout.trainable;
        const std::int64_t in_group = range.shard_offset - group.shard_begin;
        EXPECT_EQ(group.begin + rank * group.shard_numel + in_group, layout.offsets[i] + range.begin);
        EXPECT_GE(in_group, 0);
        EXPECT_LE(in_group + range.numel, group.shard_numel);
      }
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      EXPECT_EQ(next[i], specs[i].numel());
      EXPECT_EQ(layout.offsets[i] % 16, 0);
    }
  }
}

TEST(FlatLayout, FewerElementsThanRanks_LastRanksOwnOnlyPadding) {
  const FlatLayout layout = FlatLayout::make("tiny", {{"scale", {3}, {}}}, 4);
  EXPECT_EQ(layout.ranges(0).size(), 1U);
  EXPECT_TRUE(layout.ranges(3).empty());
  EXPECT_EQ(layout.numel, 3);
}

TEST(FlatLayout, BadSpecs_AreRefusedByName) {
  const auto refused = [](std::vector<ParameterSpec> specs, const std::string& says) {
    try {
      static_cast<void>(FlatLayout::make("u", std::move(specs), 2));
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      return;
    }
    ADD_FAILURE() << "accepted where it should say: " << says;
  };
  refused({}, "no parameters");
  refused({{"w", {2, 0}, {}}}, "'w'");
  refused({{"w", {-1}, {}}}, "'w'");
  refused({{"w", {}, {}}}, "1 to 4 extents");
  refused({{"w", {2, 2, 2, 2, 2}, {}}}, "1 to 4 extents");
  refused({{"w", {2}, {}}, {"w", {3}, {}}}, "two parameters named 'w'");
  refused({{"w", {std::numeric_limits<std::int64_t>::max(), 2}, {}}}, "'w'");
  refused({{"", {2}, {}}}, "name");
}

}  // namespace
}  // namespace headroom
