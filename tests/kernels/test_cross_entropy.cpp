#include "kernels/host.hpp"
#include "tensors.hpp"

#include <headroom/error.hpp>

namespace headroom::kernels::testing {
namespace {

struct Head {
  Doubles hidden, wte;
  std::vector<std::int32_t> targets;
  double scale;

  std::size_t rows() const { return targets.size(); }
  std::size_t width() const { return hidden.size() / rows(); }
  std::size_t vocabulary() const { return wte.size() / width(); }

  Doubles logits(std::size_t row) const {
    Doubles logits(vocabulary());
    for (std::size_t word = 0; word < vocabulary(); ++word) {
      for (std::size_t i = 0; i < width(); ++i) logits[word] += hidden[row * width() + i] * wte[word * width() + i];
    }
    return logits;
  }
  static double lse(const Doubles& logits) {
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    return std::log(sum);
  }
  double loss() const {
    double total = 0;
    for (std::size_t row = 0; row < rows(); ++row) {
      const Doubles all = logits(row);
      total += lse(all) - all[static_cast<std::size_t>(targets[row])];
    }
    return scale * total;
  }
  void backward(Doubles& dhidden, Doubles& dwte) const {
    dhidden.assign(hidden.size(), 0), dwte.assign(wte.size(), 0);
    for (std::size_t row = 0; row < rows(); ++row) {
      const Doubles all = logits(row);
      const double normalizer = lse(all);
      for (std::size_t word = 0; word < vocabulary(); ++word) {
        const bool is_target = static_cast<std::size_t>(targets[row]) == word;
        const double slope = scale * (std::exp(all[word] - normalizer) - (is_target ? 1 : 0));
        for (std::size_t i = 0; i < width(); ++i) {
          dhidden[row * width() + i] += slope * wte[word * width() + i];
          dwte[word * width() + i] += slope * hidden[row * width() + i];
        }
      }
    }
  }
};

class CrossEntropyTest : public KernelTest {
 protected:
  void SetUp() override { prepare(1, 1, 1, 1); }
  void prepare(std::int64_t rows, std::int64_t width, std::int32_t vocabulary, float spread) {
    Random random(static_cast<unsigned>(rows * 7 + vocabulary));
    hidden = random.floats({rows, width}, spread), wte = random.floats({vocabulary, width});
    targets = random.tokens(rows, vocabulary);
    lse = Floats({rows}), dhidden = Floats({rows, width}, std::nanf("")), dwte = Floats({vocabulary, width}, 0.25F);
    workspace = workspace_of(cross_entropy_workspace_bytes(rows, vocabulary));
  }
  CrossEntropy inputs(double scale) { return {hidden, wte, targets, lse, workspace, scale}; }
  Head reference(double scale) const { return {hidden.doubles(), wte.doubles(), targets.values, scale}; }
  void compare(double scale, double tolerance) {
    const Head head = reference(scale);
    EXPECT_NEAR(loss.values[0], 3 + head.loss(), 2e-6 * std::abs(head.loss()));
    Doubles expected_dhidden, expected_dwte;
    head.backward(expected_dhidden, expected_dwte);
    for (double& value : expected_dwte) value += 0.25;
    expect_close(dhidden, expected_dhidden, tolerance, "dhidden");
    expect_close(dwte, expected_dwte, tolerance, "dwte");
    for (std::size_t row = 0; row < head.rows(); ++row) {
      const double expected = Head::lse(head.logits(row));
      EXPECT_NEAR(static_cast<double>(lse.values[row]), expected, 2e-6 * (1 + std::abs(expected)));
    }
  }
  void check(std::int64_t rows, std::int64_t width, std::int32_t vocabulary, float spread, double tolerance) {
    SCOPED_TRACE(::testing::Message() << rows << " rows, width " << width << ", vocabulary " << vocabulary);
    prepare(rows, width, vocabulary, spread);
    const double scale = 1.0 / static_cast<double>(rows);
    loss.values[0] = 3;
    cross_entropy_forward(inputs(scale), loss, stream);
    cross_entropy_backward(inputs(scale), dhidden, dwte, stream);
    finish();
    compare(scale, tolerance);
  }
  Floats hidden{{1}}, wte{{1}}, lse{{1}}, dhidden{{1}}, dwte{{1}}, workspace{{1}};
  Tokens targets{{1}};
  Tensor<double> loss{{1}};
};

TEST_F(CrossEntropyTest, Reference_EqualsFiniteDifferences) {
  prepare(4, 3, 6, 1);
  Head head = reference(0.25);
  Doubles expected_dhidden, expected_dwte;
  head.backward(expected_dhidden, expected_dwte);
  const auto value = [&] { return head.loss(); };
  expect_close(finite_differences(head.hidden, value), expected_dhidden, 1e-7, "dhidden");
  expect_close(finite_differences(head.wte, value), expected_dwte, 1e-7, "dwte");
}

TEST_F(CrossEntropyTest, VocabularyInOneChunk_EqualsReference) {
  check(1, 5, 2, 1, 5e-6);
  check(33, 24, 256, 1, 5e-6);
}

TEST_F(CrossEntropyTest, VocabularyOfManyChunks_EqualsReference) {
  constexpr std::int64_t kRows = 2050;
  ASSERT_EQ(host::cross_entropy_chunk(kRows, 1100), 512);
  check(kRows, 6, 1100, 1, 1e-5);
}

TEST_F(CrossEntropyTest, ChunkThatDoesNotDivide_EqualsReference) {
  prepare(9, 5, 23, 1);
  std::vector<float> scratch(static_cast<std::size_t>(host::cross_entropy_workspace_numel(9, 7)));
  const host::LinearCrossEntropy head{9,
                                      5,
                                      23,
                                      7,
                                      0.5,
                                      hidden.values.data(),
                                      wte.values.data(),
                                      targets.values.data(),
                                      lse.values.data(),
                                      scratch.data()};
  loss.values[0] = 3;
  host::cross_entropy_forward(head, loss.values.data());
  host::cross_entropy_backward(head, dhidden.values.data(), dwte.values.data());
  compare(0.5, 5e-6);
}

TEST_F(CrossEntropyTest, LargeLogits_DoNotOverflow) { check(8, 16, 40, 12, 5e-5); }

TEST_F(CrossEntropyTest, Chunk_CoversSmallVocabulariesAndBoundsTheWorkspace) {
  EXPECT_EQ(host::cross_entropy_chunk(1024, 256), 256);
  EXPECT_EQ(host::cross_entropy_chunk(1024, 50257), 1024);
  EXPECT_LE(cross_entropy_workspace_bytes(1024, 50257), std::size_t{5} << 20);
  EXPECT_EQ(host::cross_entropy_chunk(1 << 20, 50257), 512);
}

TEST_F(CrossEntropyTest, TargetBeyondVocabulary_ThrowsOnTheStreamAndAddsNoLoss) {
  prepare(4, 3, 6, 1);
  targets.values[2] = 6;
  const Stream forward{device}, backward{device};
  cross_entropy_forward(inputs(1), loss, forward);
  EXPECT_THROW(forward.ref().synchronize(), InvalidInput);
  cross_entropy_backward(inputs(1), dhidden, dwte, backward);
  EXPECT_THROW(backward.ref().synchronize(), InvalidInput);
  EXPECT_EQ(loss.values[0], 0.0);
  EXPECT_EQ(dwte.values[0], 0.25F);
}

TEST_F(CrossEntropyTest, NotANumber_ReachesTheLoss) {
  prepare(4, 3, 600, 1);
  wte.values[1700] = std::nanf("");
  cross_entropy_forward(inputs(1), loss, stream);
  finish();
  EXPECT_TRUE(std::isnan(loss.values[0]));
}

}  // namespace
}  // namespace headroom::kernels::testing
