#include "tensors.hpp"

namespace headroom::kernels::testing {
namespace {

struct Norm {
  Doubles x, weight, bias;
  std::size_t width() const { return weight.size(); }
  std::size_t rows() const { return x.size() / weight.size(); }

  double mean(std::size_t row) const {
    double sum = 0;
    for (std::size_t i = 0; i < width(); ++i) sum += x[row * width() + i];
    return sum / static_cast<double>(width());
  }
  double rstd(std::size_t row) const {
    double sum = 0;
    for (std::size_t i = 0; i < width(); ++i) sum += std::pow(x[row * width() + i] - mean(row), 2);
    return 1 / std::sqrt(sum / static_cast<double>(width()) + 1e-5);
  }
  Doubles forward() const {
    Doubles y;
    for (std::size_t row = 0; row < rows(); ++row) {
      const double center = mean(row), scale = rstd(row);
      for (std::size_t i = 0; i < width(); ++i) {
        y.push_back((x[row * width() + i] - center) * scale * weight[i] + bias[i]);
      }
    }
    return y;
  }
  struct Gradients {
    Doubles dx, dweight, dbias;
  };
  Gradients backward(const Doubles& dy) const {
    Gradients to{Doubles(x.size()), Doubles(width()), Doubles(width())};
    for (std::size_t row = 0; row < rows(); ++row) {
      const double center = mean(row), scale = rstd(row), count = static_cast<double>(width());
      double sum = 0, product = 0;
      for (std::size_t i = 0; i < width(); ++i) {
        const std::size_t k = row * width() + i;
        const double normalized = (x[k] - center) * scale;
        sum += dy[k] * weight[i] / count;
        product += dy[k] * weight[i] * normalized / count;
        to.dweight[i] += dy[k] * normalized;
        to.dbias[i] += dy[k];
      }
      for (std::size_t i = 0; i < width(); ++i) {
        const std::size_t k = row * width() + i;
        to.dx[k] = scale * (dy[k] * weight[i] - sum - (x[k] - center) * scale * product);
      }
    }
    return to;
  }
};

class LayerNorm : public KernelTest {
 protected:
  /// Runs both kernels on rows of `width` that lie off zero, and compares all they write with the reference.
  void check(std::int64_t rows, std::int64_t width, Write write) {
    SCOPED_TRACE(::testing::Message() << rows << " rows of " << width);
    Random random(static_cast<unsigned>(rows * 1000 + width));
    x = random.floats({rows, width});
    for (float& value : x.values) value = 3 * value + 5;
    weight = random.floats({width}), bias = random.floats({width}), dy = random.floats({rows, width});
    Floats y({rows, width}), mean({rows}), rstd({rows}), dx({rows, width}, 0.5F);
    Floats dweight({width}, 1.0F), dbias({width}, 2.0F);
    layer_norm_forward(x, weight, bias, y, mean, rstd, stream);
    layer_norm_backward({x, weight, mean, rstd}, dy, dx, write, dweight, dbias, stream);
    finish();
    const Norm reference{x.doubles(), weight.doubles(), bias.doubles()};
    expect_close(y, reference.forward(), 4e-6, "y");
    for (std::size_t row = 0; row < reference.rows(); ++row) {
      EXPECT_NEAR(static_cast<double>(mean.values[row]), reference.mean(row), 1e-5);
      EXPECT_NEAR(static_cast<double>(rstd.values[row]) / reference.rstd(row), 1.0, 1e-5);
    }
    auto expected = reference.backward(dy.doubles());
    for (double& value : expected.dx) value += write == Write::accumulate ? 0.5 : 0.0;
    for (double& value : expected.dweight) value += 1;
    for (double& value : expected.dbias) value += 2;
    expect_close(dx, expected.dx, 1e-5, "dx");
    expect_close(dweight, expected.dweight, 4e-6, "dweight");
    expect_close(dbias, expected.dbias, 4e-6, "dbias");
  }
  Floats x{{1}}, weight{{1}}, bias{{1}}, dy{{1}};
};

TEST_F(LayerNorm, Reference_EqualsFiniteDifferences) {
  Random random(5);
  Norm norm{random.floats({3, 7}).doubles(), random.floats({7}).doubles(), random.floats({7}).doubles()};
  const Doubles weights = random.floats({3, 7}).doubles();
  const auto expected = norm.backward(weights);
  const auto loss = [&] { return weighted(weights, norm.forward()); };
  expect_close(finite_differences(norm.x, loss), expected.dx, 1e-7, "dx");
  expect_close(finite_differences(norm.weight, loss), expected.dweight, 1e-7, "dweight");
  expect_close(finite_differences(norm.bias, loss), expected.dbias, 1e-7, "dbias");
}

TEST_F(LayerNorm, Kernels_EqualReference) {
  check(1, 8, Write::overwrite);
  check(5, 37, Write::overwrite);
  check(9, 512, Write::accumulate);
  check(2, 1600, Write::accumulate);
}

TEST_F(LayerNorm, BackwardInPlace_EqualsBackwardIntoAnotherBuffer) {
  check(4, 33, Write::overwrite);
  Floats mean({4}), rstd({4}), y({4, 33}), apart({4, 33}), dweight({33}), dbias({33});
  layer_norm_forward(x, weight, bias, y, mean, rstd, stream);
  layer_norm_backward({x, weight, mean, rstd}, dy, apart, Write::overwrite, dweight, dbias, stream);
  layer_norm_backward({x, weight, mean, rstd}, dy, dy, Write::overwrite, dweight, dbias, stream);
  finish();
  EXPECT_EQ(dy.values, apart.values);
}

TEST_F(LayerNorm, NotANumber_ReachesTheOutput) {
  Floats in({1, 64}, 1.0F), scale({64}, 1.0F), shift({64}), y({1, 64}), mean({1}), rstd({1});
  in.values[20] = std::nanf("");
  layer_norm_forward(in, scale, shift, y, mean, rstd, stream);
  finish();
  EXPECT_TRUE(std::isnan(y.values[0]));
}

}  // namespace
}  // namespace headroom::kernels::testing
