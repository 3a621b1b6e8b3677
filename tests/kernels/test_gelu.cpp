#include "kernels/vector_math.hpp"
#include "tensors.hpp"

#include <limits>
#include <numbers>

namespace headroom::kernels::testing {
namespace {

double inner(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
/// 0.5 (1 + tanh u) without the cancellation that the textbook's form has for negative u.
double gelu(double x) { return x / (1 + std::exp(-2 * inner(x))); }
double gelu_slope(double x) {
  const double logistic = 1 / (1 + std::exp(-2 * inner(x)));
  const double slope = 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return logistic + x * slope * logistic / (1 + std::exp(2 * inner(x)));
}

class Gelu : public KernelTest {};

TEST_F(Gelu, Reference_EqualsTextbookFormAndFiniteDifferences) {
  for (double x = -5; x <= 5; x += 0.37) {
    EXPECT_NEAR(gelu(x), 0.5 * x * (1 + std::tanh(inner(x))), 1e-14);
    EXPECT_NEAR(gelu_slope(x), (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5, 1e-9);
  }
}

TEST_F(Gelu, ForwardAndBackward_WithinOneMillionthOfReference) {
  constexpr std::int64_t kCount = 24001;
  Floats x({kCount}), y({kCount}), dx({kCount}), dy({kCount}, 1.5F);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = -8.0F + 16.0F * static_cast<float>(i) / kCount;
  gelu_forward(x, y, stream);
  gelu_backward(dy, x, dx, stream);
  finish();
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto in = static_cast<double>(x.values[i]);
    // Relative error of e^(-2u) grows with |u|, so that far tails (values under 1e-9 of the input) are looser.
    const double tolerance = in < -4 ? 2e-5 : 2e-6;
    ASSERT_LE(std::abs(static_cast<double>(y.values[i]) - gelu(in)), tolerance * std::abs(gelu(in)) + 1e-30) << in;
    ASSERT_LE(std::abs(static_cast<double>(dx.values[i]) - 1.5 * gelu_slope(in)),
              1e-6 + tolerance * std::abs(gelu_slope(in)))
        << in;
  }
}

TEST_F(Gelu, InPlaceAndAnyShape_EqualsOutOfPlace) {
  Random random(6);
  Floats x = random.floats({3, 5, 7}), y({105}), dx({105}), dy = random.floats({105});
  gelu_forward(x, y, stream);
  gelu_backward(dy, x, dx, stream);
  gelu_backward(dy, x, dy, stream);
  gelu_forward(x, x, stream);
  finish();
  EXPECT_EQ(x.values, y.values);
  EXPECT_EQ(dy.values, dx.values);
}

TEST_F(Gelu, ExtremeInputs_StayFiniteAndNotANumberPasses) {
  constexpr float kHuge = 1e30F;
  Floats x({18}, kHuge), y({18}), dx({18}), dy({18}, 1.0F);
  x.values[1] = -kHuge;
  x.values[2] = std::nanf("");
  x.values[3] = -20;
  gelu_forward(x, y, stream);
  gelu_backward(dy, x, dx, stream);
  finish();
  EXPECT_EQ(y.values[0], kHuge);
  EXPECT_NEAR(static_cast<double>(y.values[1]), 0, 1e-6);
  EXPECT_TRUE(std::isnan(y.values[2]));
  EXPECT_TRUE(std::isnan(dx.values[2]));
  EXPECT_NEAR(static_cast<double>(y.values[3]), 0, 1e-30);
  EXPECT_NEAR(static_cast<double>(dx.values[3]), 0, 1e-30);
}

TEST(VectorMath, Exp_WithinTwoUlpAndExactAtTheEdges) {
  double worst = 0;
  for (float x = -87.0F; x < 87.0F; x += 0.00317F) {
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(host::exp(x)) / expected - 1));
  }
  EXPECT_LT(worst, 2.4e-7);
  EXPECT_EQ(host::exp(0.0F), 1.0F);
  EXPECT_EQ(host::exp(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(host::exp(-88.0F), 0.0F);
  EXPECT_GT(host::exp(std::numeric_limits<float>::infinity()), 1e38F);
  EXPECT_TRUE(std::isnan(host::exp(std::nanf(""))));
}

}  // namespace
}  // namespace headroom::kernels::testing
