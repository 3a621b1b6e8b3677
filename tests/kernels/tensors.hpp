#pragma once

#include <headroom/device.hpp>
#include <headroom/kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <type_traits>
#include <vector>

namespace headroom::kernels::testing {

using Doubles = std::vector<double>;

/// Owns its elements and converts to a view, with trailing extents 1.
template <class T>
class Tensor {
 public:
  explicit Tensor(std::initializer_list<std::int64_t> shape, T value = T{}) {
    std::size_t axis = 0;
    for (const std::int64_t extent : shape) shape_.at(axis++) = extent;
    values.assign(static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2] * shape_[3]), value);
  }
  operator TensorView() { return {values.data(), dtype(), shape_}; }  // NOLINT(*-explicit-*)
  [[nodiscard]] Doubles doubles() const { return Doubles(values.begin(), values.end()); }
  std::vector<T> values;

 private:
  static constexpr DType dtype() {
    if constexpr (std::is_same_v<T, double>) return DType::f64;
    if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
    if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
    if constexpr (std::is_same_v<T, std::uint16_t>) return DType::bf16;
    return DType::f32;
  }
  std::array<std::int64_t, 4> shape_{1, 1, 1, 1};
};

using Floats = Tensor<float>;
using Tokens = Tensor<std::int32_t>;
using Halves = Tensor<std::uint16_t>;  ///< The bits of bf16.

/// Inputs of a test; the same on every run.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  Floats floats(std::initializer_list<std::int64_t> shape, float scale = 1) {
    Floats tensor(shape);
    std::normal_distribution<float> normal(0, scale);
    for (float& value : tensor.values) value = normal(engine_);
    return tensor;
  }
  Tokens tokens(std::int64_t count, std::int32_t vocabulary) {
    Tokens tensor({count});
    std::uniform_int_distribution<std::int32_t> uniform(0, vocabulary - 1);
    for (std::int32_t& token : tensor.values) token = uniform(engine_);
    return tensor;
  }

 private:
  std::mt19937 engine_;
};

inline Floats workspace_of(std::size_t bytes) { return Floats({static_cast<std::int64_t>(bytes / sizeof(float))}); }

/// A stream on the host device; `finished` waits for it.
class KernelTest : public ::testing::Test {
 protected:
  Device device = Device::host();
  Stream stream{device};
  void finish() const { stream.ref().synchronize(); }
};

/// Each |actual - expected| is at most tolerance * (rms(expected) + |expected|).
inline void expect_close(const Doubles& actual, const Doubles& expected, double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double squares = 0;
  for (const double value : expected) squares += value * value;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance * (rms + std::abs(expected[i])))
        << what << "[" << i << "] is " << actual[i] << ", expected " << expected[i];
  }
}
template <class T>
void expect_close(const Tensor<T>& actual, const Doubles& expected, double tolerance, const char* what) {
  expect_close(actual.doubles(), expected, tolerance, what);
}

/// sum of weights * values: what a test differentiates.
inline double weighted(const Doubles& weights, const Doubles& values) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

/// The gradient of `loss()` by central differences in each element of `at`, which loss reads.
template <class Loss>
Doubles finite_differences(Doubles& at, const Loss& loss) {
  constexpr double kStep = 1e-5;
  Doubles gradient;
  for (double& value : at) {
    const double kept = value;
    value = kept + kStep;
    const double above = loss();
    value = kept - kStep;
    const double below = loss();
    value = kept;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

}  // namespace headroom::kernels::testing
