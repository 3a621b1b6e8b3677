#include "tensors.hpp"

#include <limits>

namespace headroom::kernels::testing {
namespace {

/// torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ in f64, one element at a time.
struct TorchAdamW {
  AdamWHyperparameters options;
  Doubles parameter, exp_avg, exp_avg_sq;

  void step(Doubles gradient, double norm, int t, bool decay) {
    if (options.clip > 0) {
      for (double& value : gradient) value *= std::min(1.0, options.clip / (norm + 1e-6));
    }
    for (std::size_t i = 0; i < parameter.size(); ++i) {
      if (decay) parameter[i] *= 1 - options.learning_rate * options.weight_decay;
      exp_avg[i] = options.beta1 * exp_avg[i] + (1 - options.beta1) * gradient[i];
      exp_avg_sq[i] = options.beta2 * exp_avg_sq[i] + (1 - options.beta2) * gradient[i] * gradient[i];
      const double corrected = std::sqrt(exp_avg_sq[i]) / std::sqrt(1 - std::pow(options.beta2, t));
      parameter[i] -= options.learning_rate / (1 - std::pow(options.beta1, t)) * exp_avg[i] / (corrected + options.eps);
    }
  }
};

class AdamWTest : public KernelTest {
 protected:
  static constexpr std::int64_t kCount = 1003;
  Random random{9};
  Floats parameter = random.floats({kCount}), gradient = random.floats({kCount}), exp_avg{{kCount}};
  Floats exp_avg_sq{{kCount}};
  Tensor<double> scalars{{4}};
  TensorView sum() { return {scalars.values.data(), DType::f64, {1, 1, 1, 1}}; }

  void step(const AdamWHyperparameters& options, bool decay) {
    fill(sum(), 0, stream);
    sum_squares(gradient, sum(), stream);
    advance_step(scalars, stream);
    adamw(parameter, gradient, exp_avg, exp_avg_sq, scalars, options, decay, stream);
    finish();
  }
  /// Steps with fresh gradients of this size; both must stay together.
  void check(const AdamWHyperparameters& options, bool decay, float size) {
    TorchAdamW torch{options, parameter.doubles(), exp_avg.doubles(), exp_avg_sq.doubles()};
    for (int t = 1; t <= 5; ++t) {
      SCOPED_TRACE(t);
      gradient = random.floats({kCount}, size);
      double squares = 0;
      for (const double value : gradient.doubles()) squares += value * value;
      step(options, decay);
      torch.step(gradient.doubles(), std::sqrt(squares), t, decay);
      expect_close(parameter, torch.parameter, 1e-6, "parameter");
      expect_close(exp_avg, torch.exp_avg, 1e-6, "exp_avg");
      expect_close(exp_avg_sq, torch.exp_avg_sq, 1e-6, "exp_avg_sq");
      EXPECT_EQ(scalars.values[2], t);
    }
  }
};

TEST_F(AdamWTest, GradientsAboveTheClip_EqualTorch) { check({.learning_rate = 0.01}, true, 2); }
TEST_F(AdamWTest, GradientsBelowTheClip_EqualTorch) { check({.learning_rate = 0.01}, true, 1e-3F); }
TEST_F(AdamWTest, ClipOff_EqualsTorch) { check({.learning_rate = 0.01, .clip = 0}, true, 2); }
TEST_F(AdamWTest, NoDecay_EqualsTorch) { check({.learning_rate = 0.01, .weight_decay = 0.5}, false, 1); }
TEST_F(AdamWTest, OtherBetasAndEps_EqualTorch) {
  check({.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.999, .eps = 1e-3, .weight_decay = 0.3, .clip = 5}, true, 1);
}

TEST_F(AdamWTest, NormThatIsNotFinite_ChangesNothingAndCountsASkip) {
  step({}, true);
  const auto before = parameter.values, first = exp_avg.values, second = exp_avg_sq.values;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    gradient.values[1000] = bad;
    step({}, true);
    EXPECT_EQ(parameter.values, before);
    EXPECT_EQ(exp_avg.values, first);
    EXPECT_EQ(exp_avg_sq.values, second);
  }
  EXPECT_EQ(scalars.values[2], 1.0);
  EXPECT_EQ(scalars.values[3], 2.0);
}

TEST_F(AdamWTest, RangesApart_EqualTheWhole) {
  Floats whole = parameter, first_moment = exp_avg, second_moment = exp_avg_sq;
  step({}, true);
  const auto part = [](Floats& tensor, std::int64_t first, std::int64_t count) {
    return TensorView{tensor.values.data() + first, DType::f32, {count, 1, 1, 1}};
  };
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{77}}) {
    const std::int64_t count = first == 0 ? 77 : kCount - 77;
    adamw(part(whole, first, count), part(gradient, first, count), part(first_moment, first, count),
          part(second_moment, first, count), scalars, {}, true, stream);
  }
  finish();
  EXPECT_EQ(whole.values, parameter.values);
}

TEST_F(AdamWTest, SumSquares_IsExactToDoubleAndAccumulates) {
  Floats values({100003}, 1.0F);
  values.values[5] = 1e19F;
  values.values[99999] = 3.0F;
  scalars.values[0] = 7;
  sum_squares(values, sum(), stream);
  finish();
  double expected = 7;
  for (const double value : values.doubles()) expected += value * value;
  EXPECT_NEAR(scalars.values[0] / expected, 1, 1e-12);
}

}  // namespace
}  // namespace headroom::kernels::testing
