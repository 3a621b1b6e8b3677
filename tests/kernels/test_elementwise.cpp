#include "tensors.hpp"

namespace headroom::kernels::testing {
namespace {

class Elementwise : public KernelTest {};

TEST_F(Elementwise, FillCopyAccumulate_DoWhatTheySay) {
  Floats a({5, 7}), b({35}, 1.0F);
  Tensor<double> wide({3});
  Tokens tokens({3});
  fill(a, 2.5, stream);
  accumulate(a, b, stream);
  copy(b, a, stream);
  fill(wide, 1e300, stream);
  fill(tokens, 7, stream);
  finish();
  EXPECT_EQ(a.values, std::vector<float>(35, 3.5F));
  EXPECT_EQ(wide.values, std::vector<double>(3, 1e300));
  EXPECT_EQ(tokens.values, std::vector<std::int32_t>(3, 7));
}

TEST_F(Elementwise, CopyOfAnyDtype_CopiesAllBytes) {
  Tensor<std::uint8_t> from({9}, 200), to({9});
  copy(from, to, stream);
  finish();
  EXPECT_EQ(to.values, from.values);
}

TEST_F(Elementwise, EmptyTensors_AreAccepted) {
  const TensorView empty{nullptr, DType::f32, {0, 1, 1, 1}};
  Tensor<double> sum({1}, 3.0), scalars({4});
  fill(empty, 1, stream);
  copy(empty, empty, stream);
  accumulate(empty, empty, stream);
  cast(empty, {nullptr, DType::bf16, {0, 1, 1, 1}}, stream);
  fill_normal(empty, {}, stream);
  sum_squares(empty, sum, stream);
  adamw(empty, empty, empty, empty, scalars, {}, true, stream);
  finish();
  EXPECT_EQ(sum.values[0], 3.0);
}

}  // namespace
}  // namespace headroom::kernels::testing
