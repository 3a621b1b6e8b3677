#include "tensors.hpp"

#include <headroom/error.hpp>

namespace headroom::kernels::testing {
namespace {

class Embedding : public KernelTest {
 protected:
  static constexpr std::int64_t kBatch = 3, kSequence = 5, kWidth = 7, kPositions = 6;
  static constexpr std::int32_t kVocabulary = 4;  // fewer than rows: tokens repeat
  static constexpr std::int64_t kRows = kBatch * kSequence;
  Random random{7};
  Tokens tokens = random.tokens(kRows, kVocabulary);

  Doubles reference(const Doubles& wte, const Doubles& wpe) const {
    Doubles out;
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto token = static_cast<std::size_t>(tokens.values[row]);
      for (std::size_t i = 0; i < kWidth; ++i) {
        out.push_back(wte[token * kWidth + i] + wpe[row % kSequence * kWidth + i]);
      }
    }
    return out;
  }
};

TEST_F(Embedding, Forward_EqualsReference) {
  Floats wte = random.floats({kVocabulary, kWidth}), wpe = random.floats({kPositions, kWidth}), out({kRows, kWidth});
  embedding_forward(tokens, wte, wpe, out, kSequence, stream);
  finish();
  expect_close(out, reference(wte.doubles(), wpe.doubles()), 1e-7, "out");
}

TEST_F(Embedding, Backward_EqualsFiniteDifferencesAndAccumulates) {
  Floats dout = random.floats({kRows, kWidth});
  Floats dwte({kVocabulary, kWidth}, 1.0F), dwpe({kPositions, kWidth}, 2.0F);
  embedding_backward(tokens, dout, dwte, dwpe, kSequence, stream);
  finish();
  Doubles wte = random.floats({kVocabulary, kWidth}).doubles(), wpe = random.floats({kPositions, kWidth}).doubles();
  const auto loss = [&, weights = dout.doubles()] { return weighted(weights, reference(wte, wpe)); };
  Doubles expected_dwte = finite_differences(wte, loss), expected_dwpe = finite_differences(wpe, loss);
  for (double& value : expected_dwte) value += 1;
  for (double& value : expected_dwpe) value += 2;
  expect_close(dwte, expected_dwte, 1e-6, "dwte");
  expect_close(dwpe, expected_dwpe, 1e-6, "dwpe");
}

TEST_F(Embedding, TokenBeyondVocabulary_ThrowsOnTheStreamAndWritesNothing) {
  Floats wte({kVocabulary, kWidth}, 1.0F), wpe({kPositions, kWidth}, 1.0F), out({kRows, kWidth});
  for (const std::int32_t bad : {kVocabulary, -1}) {
    tokens.values[9] = bad;
    const Stream forward{device}, backward{device};
    embedding_forward(tokens, wte, wpe, out, kSequence, forward);
    EXPECT_THROW(forward.ref().synchronize(), InvalidInput) << bad;
    embedding_backward(tokens, out, wte, wpe, kSequence, backward);
    EXPECT_THROW(backward.ref().synchronize(), InvalidInput) << bad;
  }
  EXPECT_EQ(out.values, std::vector<float>(static_cast<std::size_t>(kRows * kWidth), 0.0F));
}

}  // namespace
}  // namespace headroom::kernels::testing
