#include "tensors.hpp"

#include <bit>
#include <cstring>
#include <numeric>

namespace headroom::kernels::testing {
namespace {

constexpr std::int64_t kPatterns = 1 << 16;

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

bool is_nan(std::uint16_t half) { return (half & 0x7FFFU) > 0x7F80U; }

Halves all_patterns() {
  Halves patterns({kPatterns});
  std::iota(patterns.values.begin(), patterns.values.end(), std::uint16_t{0});
  return patterns;
}

class Cast : public KernelTest {
 protected:
  Halves narrowed(Floats& wide) {
    Halves halves({static_cast<std::int64_t>(wide.values.size())});
    cast(wide, halves, stream);
    finish();
    return halves;
  }
};

TEST_F(Cast, EveryBf16_WidensExactlyAndComesBack) {
  Halves patterns = all_patterns();
  Floats wide({kPatterns});
  cast(patterns, wide, stream);
  const Halves back = narrowed(wide);
  for (std::size_t i = 0; i < back.values.size(); ++i) {
    const std::uint16_t half = patterns.values[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide.values[i]), std::uint32_t{half} << 16U);
    const bool same = is_nan(half) ? is_nan(back.values[i]) : back.values[i] == half;
    ASSERT_TRUE(same) << half << " came back as " << back.values[i];
  }
}

/// The nearer one of the bf16 toward zero from `value` and the next beyond it, the even one where both are as near.
std::uint16_t nearest(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U;
  const double below = std::abs(double{of_bits(bits)});
  const double step = std::ldexp(1.0, std::max(std::ilogb(below == 0 ? 1e-60 : below), -126) - 7);
  const double rest = std::abs(double{value}) - below;
  const bool odd = (bits & 0x10000U) != 0;
  return static_cast<std::uint16_t>((bits >> 16U) + (rest > step / 2 || (rest == step / 2 && odd) ? 1U : 0U));
}

TEST_F(Cast, BetweenTwoBf16_RoundsToTheNearerOne_TiesToEven) {
  for (const std::uint32_t low : {0x0001U, 0x4000U, 0x7FFFU, 0x8000U, 0x8001U, 0xC000U, 0xFFFFU}) {
    Floats wide({kPatterns});
    for (std::uint32_t i = 0; i < kPatterns; ++i) wide.values[i] = of_bits((i << 16U) | low);
    const Halves halves = narrowed(wide);
    for (std::size_t i = 0; i < halves.values.size(); ++i) {
      const float value = wide.values[i];
      const bool right = std::isnan(value) ? is_nan(halves.values[i]) : halves.values[i] == nearest(value);
      ASSERT_TRUE(right) << value << " became " << halves.values[i];
    }
  }
}

TEST_F(Cast, InPlace_EitherWay_IsAsOutOfPlace) {
  for (const std::int64_t count : {1, 2, 3, 7, 255, 511, 512, 513, 1023, 1024, 1025, 4099}) {
    SCOPED_TRACE(count);
    const auto numel = static_cast<std::size_t>(count);
    Floats wide = Random(static_cast<unsigned>(count)).floats({count});
    const Halves apart = narrowed(wide);
    const TensorView as_half{wide.values.data(), DType::bf16, {count, 1, 1, 1}};
    cast(wide, as_half, stream);
    finish();
    EXPECT_EQ(std::memcmp(wide.values.data(), apart.values.data(), 2 * numel), 0);
    cast(as_half, wide, stream);
    finish();
    for (std::size_t i = 0; i < numel; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide.values[i]), std::uint32_t{apart.values[i]} << 16U) << i;
    }
  }
}

TEST_F(Cast, SameDtype_CopiesOrLeavesInPlace) {
  Tokens tokens = Random(1).tokens(9, 100), to({9});
  const std::vector<std::int32_t> before = tokens.values;
  cast(tokens, to, stream);
  cast(tokens, tokens, stream);
  finish();
  EXPECT_EQ(to.values, before);
  EXPECT_EQ(tokens.values, before);
}

TEST_F(Cast, AccumulateFromBf16_AddsTheWidenedNumbers) {
  Floats wide = Random(2).floats({1027}), sum = Random(3).floats({1027});
  Halves halves = narrowed(wide);
  std::vector<float> expected = sum.values;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += of_bits(std::uint32_t{halves.values[i]} << 16U);
  accumulate(halves, sum, stream);
  finish();
  EXPECT_EQ(sum.values, expected);
}

}  // namespace
}  // namespace headroom::kernels::testing
