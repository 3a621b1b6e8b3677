#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "runtime/core/bf16.hpp"
#include "shard/toy_model.hpp"
#include "shard/world.hpp"

/// What changes rounding, against the same step in f64 and a bound that is computed, not chosen.
///
/// The bound is that of running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1): a
/// sum of n products, in any order, is off by at most gamma(n) = n u / (1 - n u) times the sum of the products'
/// absolute values. So a model of absolute values, run beside the exact one, carries the largest error that each value
/// can have.
namespace headroom {
namespace {

using test::ToyModel;
using test::ToyOptions;

constexpr double kUnitF32 = 0x1p-24, kUnitBf16 = 0x1p-8;

/// A number and how far what was computed may be from it.
struct Bounded {
  double value = 0, error = 0;
};
using Matrix = std::vector<Bounded>;

/// The toy model's step over a whole global batch: `rows` rows, all micro-batches and ranks together.
class ExactStep {
 public:
  /// `sums`: how many partial sums a gradient is made of. Narrow: what travels is rounded to bf16.
  ExactStep(std::size_t width, std::size_t rows, double scale, int sums, bool narrow_parameters, bool narrow_gradients)
      : width_(width),
        rows_(rows),
        scale_(scale),
        sums_(sums),
        narrow_parameters_(narrow_parameters),
        narrow_gradients_(narrow_gradients) {}

  void run(Matrix x, std::vector<Matrix> weights, std::vector<Matrix> biases) {
    std::vector<Matrix> inputs{std::move(x)};
    for (std::size_t unit = 0; unit < weights.size(); ++unit) {
      if (narrow_parameters_) {
        round(weights[unit]);
        round(biases[unit]);
      }
      inputs.push_back(product(inputs.back(), weights[unit], biases[unit]));
    }
    Matrix gradient = std::move(inputs.back());
    for (Bounded& each : gradient) {
      loss.value += 0.5 * each.value * each.value * scale_;
      loss.error += (std::abs(each.value) * each.error + 0.5 * each.error * each.error) * scale_;
      each.value *= scale_;
      each.error = each.error * scale_ + std::abs(each.value) * kUnitF32;
    }
    for (std::size_t unit = weights.size(); unit-- > 0;) {
      add_norm(inputs[unit], gradient);
      gradient = product_with_transposed(gradient, weights[unit]);
    }
    norm = {std::sqrt(squares_), std::sqrt(squares_of_errors_)};  // by the triangle inequality
  }

  Bounded loss, norm;

 private:
  static double gamma(std::size_t n) {
    const double nu = static_cast<double>(n) * kUnitF32;
    return nu / (1 - nu);
  }
  /// The masters are known, so what a gather makes of them is too.
  static void round(Matrix& matrix) {
    for (Bounded& each : matrix) {
      each.value = static_cast<double>(detail::from_bf16(detail::to_bf16(static_cast<float>(each.value))));
    }
  }
  /// The sum of n products of a(i) and b(i).
  static Bounded dot(std::size_t n, const std::function<const Bounded&(std::size_t)>& a,
                     const std::function<const Bounded&(std::size_t)>& b) {
    Bounded sum;
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double big_a = std::abs(a(i).value) + a(i).error;
      const double big_b = std::abs(b(i).value) + b(i).error;
      sum.value += a(i).value * b(i).value;
      sum.error += big_a * big_b - std::abs(a(i).value * b(i).value);
      largest += big_a * big_b;
    }
    sum.error += gamma(n + 1) * largest;
    return sum;
  }
  [[nodiscard]] Matrix product(const Matrix& x, const Matrix& w, const Matrix& bias) const {
    static const Bounded one{1, 0};
    Matrix y;
    for (std::size_t row = 0; row < rows_; ++row) {
      for (std::size_t column = 0; column < width_; ++column) {
        y.push_back(dot(
            width_ + 1, [&](std::size_t i) -> auto& { return i < width_ ? x[row * width_ + i] : one; },
            [&](std::size_t i) -> auto& { return i < width_ ? w[i * width_ + column] : bias[column]; }));
      }
    }
    return y;
  }
  [[nodiscard]] Matrix product_with_transposed(const Matrix& dy, const Matrix& w) const {
    Matrix dx;
    for (std::size_t row = 0; row < rows_; ++row) {
      for (std::size_t column = 0; column < width_; ++column) {
        dx.push_back(dot(
            width_, [&](std::size_t i) -> auto& { return dy[row * width_ + i]; },
            [&](std::size_t i) -> auto& { return w[column * width_ + i]; }));
      }
    }
    return dx;
  }
  void add_norm(const Matrix& x, const Matrix& dy) {
    static const Bounded one{1, 0};
    for (std::size_t in = 0; in <= width_; ++in) {  // the last row is the bias's
      for (std::size_t out = 0; out < width_; ++out) {
        Bounded gradient = dot(
            rows_, [&](std::size_t row) -> auto& { return in < width_ ? x[row * width_ + in] : one; },
            [&](std::size_t row) -> auto& { return dy[row * width_ + out]; });
        double magnitude = 0;  // of its partial sums, however they are cut
        for (std::size_t row = 0; row < rows_; ++row) {
          magnitude += std::abs((in < width_ ? x[row * width_ + in].value : 1) * dy[row * width_ + out].value);
        }
        // Each part is rounded before it travels, and what arrives summed once more.
        const double rounding = narrow_gradients_ ? kUnitBf16 : kUnitF32;
        gradient.error +=
            (gamma(static_cast<std::size_t>(sums_)) + 2 * rounding * sums_) * (magnitude + gradient.error);
        squares_ += gradient.value * gradient.value;
        squares_of_errors_ += gradient.error * gradient.error;
      }
    }
  }

  std::size_t width_, rows_;
  double scale_;
  int sums_;
  bool narrow_parameters_, narrow_gradients_;
  double squares_ = 0, squares_of_errors_ = 0;
};

struct Measured {
  double loss = 0, norm = 0;
  std::vector<Matrix> weights, biases;
};

Measured first_step(int world, const ToyOptions& options) {
  return test::on_ranks<Measured>(world, {}, [&](Job& job) {
    ToyModel model(job, options);
    model.params.prepare();
    Measured measured;
    for (int unit = 0; unit < options.units; ++unit) {
      model.params.read(unit, [&](int parameter, std::span<const float> values) {
        Matrix matrix;
        for (const float value : values) matrix.push_back({value, 0});
        (parameter == 0 ? measured.weights : measured.biases).push_back(std::move(matrix));
      });
    }
    const StepReport report = model.step();
    measured.loss = report.loss();
    measured.norm = report.gradient_norm();
    model.params.finish();
    return measured;
  })[0];
}

/// The global batch, as ToyModel draws it.
Matrix global_batch(std::int64_t numel) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  run_ranks(1, {}, {}, [&](Job& job) {
    const Stream stream(job.device());
    kernels::fill_normal({values.data(), DType::f32, {numel, 1, 1, 1}}, {.key = 99, .stream = 1, .stddev = 1}, stream);
    stream.ref().synchronize();
  });
  Matrix matrix;
  for (const float value : values) matrix.push_back({value, 0});
  return matrix;
}

/// The global batch is 24 rows however it is cut, so the exact step is one.
void expect_within_bound(int world, int micro_batches, const ToyOptions& given) {
  ToyOptions options = given;
  options.micro_batches = micro_batches;
  options.rows = 24 / (world * micro_batches);
  const Measured measured = first_step(world, options);
  const auto width = static_cast<std::size_t>(options.width);
  ExactStep exact(width, 24, 1.0 / (24.0 * static_cast<double>(width)), world * micro_batches,
                  options.parameters.gathered == DType::bf16, options.parameters.reduced == DType::bf16);
  exact.run(global_batch(24 * options.width), measured.weights, measured.biases);
  EXPECT_LE(std::abs(measured.loss - exact.loss.value), exact.loss.error);
  EXPECT_LE(std::abs(measured.norm - exact.norm.value), exact.norm.error);
  // A bound that anything meets would show nothing.
  EXPECT_LT(exact.loss.error, 1e-3 * exact.loss.value);
  EXPECT_LT(exact.norm.error, (options.parameters.reduced == DType::bf16 ? 0.2 : 1e-3) * exact.norm.value);
}

TEST(Tolerance, StrategiesWorldsAndAccumulation_StayWithinTheBoundAgainstF64) {
  for (const int world : {1, 2, 4}) {
    for (const int micro_batches : {1, 3}) {
      for (const auto accumulation : {Accumulation::sharded, Accumulation::full}) {
        for (const int shard_ranks : {0, 1, 2}) {
          if (world == 1 || (world == 2 && shard_ranks == 2)) continue;
          SCOPED_TRACE(testing::Message() << "world " << world << ", micro-batches " << micro_batches << ", full "
                                          << (accumulation == Accumulation::full) << ", shard ranks " << shard_ranks);
          ToyOptions options{.units = 3, .width = 16};
          options.parameters.accumulation = accumulation;
          options.parameters.strategy = shard_ranks == 0   ? ShardStrategy::full_shard
                                        : shard_ranks == 1 ? ShardStrategy::no_shard
                                                           : ShardStrategy::hybrid;
          options.groups.shard_ranks = shard_ranks;
          expect_within_bound(world, micro_batches, options);
        }
      }
    }
  }
  expect_within_bound(1, 1, {.units = 3, .width = 16});
  expect_within_bound(1, 3, {.units = 3, .width = 16});
}

TEST(Tolerance, NarrowGathersAndReductions_StayWithinTheBoundAgainstF64) {
  for (const int micro_batches : {1, 2}) {
    ToyOptions options{.units = 3, .width = 16};
    options.parameters.gathered = DType::bf16;
    options.parameters.reduced = DType::bf16;
    expect_within_bound(2, micro_batches, options);
  }
}

}  // namespace
}  // namespace headroom
