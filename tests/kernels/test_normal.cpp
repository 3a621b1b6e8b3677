#include "kernels/philox.hpp"
#include "tensors.hpp"

namespace headroom::kernels::testing {
namespace {

using Bits = std::array<std::uint32_t, 4>;

// Known answers of Random123's kat_vectors (philox4x32 10).
TEST(Philox, KnownAnswers_Equal) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Bits{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Bits{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Bits{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

class FillNormal : public KernelTest {};

TEST_F(FillNormal, Shards_HoldThePartsOfTheWhole) {
  Floats whole({103});
  fill_normal(whole, {.key = 42, .stream = 7, .stddev = 0.02}, stream);
  for (const std::int64_t cut : {1, 2, 3, 4, 50, 102}) {
    Floats low({cut}), high({103 - cut});
    fill_normal(low, {.key = 42, .stream = 7, .stddev = 0.02}, stream);
    fill_normal(high, {.key = 42, .stream = 7, .first_index = cut, .stddev = 0.02}, stream);
    finish();
    std::vector<float> joined = low.values;
    joined.insert(joined.end(), high.values.begin(), high.values.end());
    EXPECT_EQ(joined, whole.values) << "cut at " << cut;
  }
}

TEST_F(FillNormal, KeyAndStream_GiveOtherNumbers) {
  Floats base({64}), other_key({64}), other_stream({64});
  fill_normal(base, {.key = 1, .stream = 1}, stream);
  fill_normal(other_key, {.key = 2, .stream = 1}, stream);
  fill_normal(other_stream, {.key = 1, .stream = 2}, stream);
  finish();
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NE(base.values[i], other_key.values[i]);
    EXPECT_NE(base.values[i], other_stream.values[i]);
  }
}

TEST_F(FillNormal, ManyNumbers_HaveTheMomentsAndTailsOfANormal) {
  constexpr std::int64_t kCount = 400000;
  Floats tensor({kCount});
  fill_normal(tensor, {.key = 3, .mean = 1, .stddev = 2}, stream);
  finish();
  double mean = 0, variance = 0, skew = 0, kurtosis = 0, beyond_two = 0, neighbours = 0, before = 0;
  for (const double value : tensor.doubles()) {
    const double z = (value - 1) / 2;
    mean += z / kCount, variance += z * z / kCount, skew += z * z * z / kCount, kurtosis += z * z * z * z / kCount;
    beyond_two += std::abs(z) > 2 ? 1.0 / kCount : 0.0;
    neighbours += z * before / kCount, before = z;
  }
  // Five standard errors of each.
  EXPECT_NEAR(mean, 0, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(skew, 0, 5 * std::sqrt(15.0 / kCount));
  EXPECT_NEAR(kurtosis, 3, 5 * std::sqrt(96.0 / kCount));
  EXPECT_NEAR(beyond_two, 0.0455, 5 * std::sqrt(0.0455 / kCount));
  EXPECT_NEAR(neighbours, 0, 5 * std::sqrt(1.0 / kCount));
}

}  // namespace
}  // namespace headroom::kernels::testing
