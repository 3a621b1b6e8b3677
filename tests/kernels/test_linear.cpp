#include "kernels/host.hpp"
#include "tensors.hpp"

namespace headroom::kernels::testing {
namespace {

struct Sizes {
  std::int64_t rows, in, out;
};

std::size_t at(std::int64_t row, std::int64_t column, std::int64_t columns) {
  return static_cast<std::size_t>(row * columns + column);
}

/// op(a)[m,k] * op(b)[k,n].
Doubles product(const Doubles& a, bool ta, const Doubles& b, bool tb, std::int64_t m, std::int64_t n, std::int64_t k) {
  Doubles c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) {
        c[at(i, j, n)] += a[ta ? at(l, i, m) : at(i, l, k)] * b[tb ? at(j, l, k) : at(l, j, n)];
      }
    }
  }
  return c;
}

Doubles linear(const Sizes& sizes, const Doubles& x, const Doubles& w, const Doubles& bias) {
  Doubles y = product(x, false, w, false, sizes.rows, sizes.out, sizes.in);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return y;
}

class Gemm : public KernelTest {};
class Linear : public KernelTest {};

TEST_F(Gemm, EveryTransposition_EqualsReference) {
  constexpr std::int64_t kM = 17, kN = 33, kK = 9;
  Random random(1);
  for (const Transpose ta : {Transpose::no, Transpose::yes}) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      SCOPED_TRACE(::testing::Message() << "ta " << (ta == Transpose::yes) << ", tb " << (tb == Transpose::yes));
      Floats a = ta == Transpose::no ? random.floats({kM, kK}) : random.floats({kK, kM});
      Floats b = tb == Transpose::no ? random.floats({kK, kN}) : random.floats({kN, kK});
      Floats c = random.floats({kM, kN});
      Doubles expected = product(a.doubles(), ta == Transpose::yes, b.doubles(), tb == Transpose::yes, kM, kN, kK);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = 0.5 * expected[i] + 2.0 * static_cast<double>(c.values[i]);
      }
      gemm(a, ta, b, tb, c, 0.5F, 2.0F, stream);
      finish();
      expect_close(c, expected, 1e-6, "c");
    }
  }
}

TEST_F(Gemm, BetaZero_IgnoresWhatOutputHeld) {
  Floats a({2, 2}, 1.0F), b({2, 2}, 1.0F), c({2, 2}, std::nanf(""));
  gemm(a, Transpose::no, b, Transpose::no, c, 1.0F, 0.0F, stream);
  finish();
  EXPECT_EQ(c.values, std::vector<float>(4, 2.0F));
}

TEST_F(Linear, OddSizes_ForwardEqualsReference) {
  for (const Sizes& sizes : {Sizes{1, 1, 1}, Sizes{7, 5, 3}, Sizes{33, 64, 130}}) {
    SCOPED_TRACE(::testing::Message() << sizes.rows << " x " << sizes.in << " x " << sizes.out);
    Random random(2);
    Floats x = random.floats({sizes.rows, sizes.in}), w = random.floats({sizes.in, sizes.out});
    Floats bias = random.floats({sizes.out}), y({sizes.rows, sizes.out}, 99.0F);
    Floats residual = random.floats({sizes.rows, sizes.out});
    linear_forward(x, w, bias, y, stream);
    finish();
    Doubles expected = linear(sizes, x.doubles(), w.doubles(), bias.doubles());
    expect_close(y, expected, 1e-6, "y");
    const Doubles before = residual.doubles();
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    linear_residual_forward(x, w, bias, residual, y, stream);
    linear_residual_forward(x, w, bias, residual, residual, stream);
    finish();
    expect_close(y, expected, 1e-6, "y with residual");
    EXPECT_EQ(residual.values, y.values) << "in place";
  }
}

TEST_F(Linear, Backward_EqualsFiniteDifferencesAndAccumulatesParameters) {
  const Sizes sizes{5, 4, 3};
  Random random(3);
  Floats x = random.floats({sizes.rows, sizes.in}), w = random.floats({sizes.in, sizes.out});
  Floats bias = random.floats({sizes.out}), dy = random.floats({sizes.rows, sizes.out});
  Floats dx({sizes.rows, sizes.in}, 99.0F), dw({sizes.in, sizes.out}, 1.0F), dbias({sizes.out}, 2.0F);
  linear_backward(dy, x, w, dx, dw, dbias, stream);
  finish();
  Doubles x64 = x.doubles(), w64 = w.doubles(), bias64 = bias.doubles();
  const auto loss = [&, dy64 = dy.doubles()] { return weighted(dy64, linear(sizes, x64, w64, bias64)); };
  expect_close(dx, finite_differences(x64, loss), 1e-6, "dx");
  Doubles expected_dw = finite_differences(w64, loss), expected_dbias = finite_differences(bias64, loss);
  for (double& value : expected_dw) value += 1;
  for (double& value : expected_dbias) value += 2;
  expect_close(dw, expected_dw, 1e-6, "dw");
  expect_close(dbias, expected_dbias, 1e-6, "dbias");
}

TEST_F(Linear, BackwardOfOddSizes_EqualsReference) {
  const Sizes sizes{67, 33, 129};
  Random random(4);
  Floats x = random.floats({sizes.rows, sizes.in}), w = random.floats({sizes.in, sizes.out});
  Floats dy = random.floats({sizes.rows, sizes.out});
  Floats dx({sizes.rows, sizes.in}), dw({sizes.in, sizes.out}), dbias({sizes.out});
  linear_backward(dy, x, w, dx, dw, dbias, stream);
  finish();
  const Doubles dy64 = dy.doubles();
  expect_close(dx, product(dy64, false, w.doubles(), true, sizes.rows, sizes.in, sizes.out), 2e-6, "dx");
  expect_close(dw, product(x.doubles(), true, dy64, false, sizes.in, sizes.out, sizes.rows), 2e-6, "dw");
  expect_close(
      dbias, product(Doubles(static_cast<std::size_t>(sizes.rows), 1.0), false, dy64, false, 1, sizes.out, sizes.rows),
      2e-6, "dbias");
}

}  // namespace
}  // namespace headroom::kernels::testing
