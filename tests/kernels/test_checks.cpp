#include "tensors.hpp"

#include <functional>
#include <stdexcept>

namespace headroom::kernels::testing {
namespace {

class Checks : public KernelTest {
 protected:
  /// The call throws std::logic_error whose text has `part`, and nothing was enqueued.
  void refused(const std::function<void()>& call, const std::string& part) {
    const Ticket before = stream.ref().issued();
    try {
      call();
      ADD_FAILURE() << "accepted: " << part;
    } catch (const std::logic_error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(stream.ref().issued(), before);
  }
  Floats x{{4, 6}}, w{{6, 8}}, bias{{8}}, y{{4, 8}}, row{{4}}, wide{{4, 24}};
  Tokens tokens{{4}};
};

TEST_F(Checks, Unit_IsThatOfTheOperation) {
  fill(x, 0, {stream, 3});
  EXPECT_EQ(stream.ref().issued(), 1U);
  finish();
}

TEST_F(Checks, Elementwise_RefusesOtherCountsAndDtypes) {
  refused([&] { copy(x, y, stream); }, "copy: destination of shape [4, 8, 1, 1] has 32 elements, expected 24");
  refused([&] { accumulate(tokens, row, stream); }, "accumulate: source is i32, expected f32 or bf16");
  refused([&] { accumulate(x, y, stream); }, "accumulate: destination of shape [4, 8, 1, 1] has 32 elements");
  Halves few({4});
  refused([&] { accumulate(row, few, stream); }, "accumulate: destination is bf16, expected f32");
  Tensor<std::uint8_t> bytes({4});
  refused([&] { fill(bytes, 0, stream); }, "fill: the tensor must be f32, f64 or i32");
  refused([&] { fill({nullptr, DType::f32, {4, 1, 1, 1}}, 0, stream); }, "has no memory");
  refused([&] { fill_normal(x, {.first_index = -1}, stream); }, "first_index");
  refused([&] { gelu_forward(x, y, stream); }, "gelu_forward: y");
  refused([&] { gelu_backward(y, x, x, stream); }, "gelu_backward: dy");
}

TEST_F(Checks, Cast_RefusesOtherDtypesCountsAndOverlaps) {
  Halves halves({24}), few({4});
  Tensor<double> wide64({4});
  refused([&] { cast(row, wide64, stream); }, "cast: destination is f64, expected f32 or bf16");
  refused([&] { cast(tokens, few, stream); }, "cast: source is i32, expected f32 or bf16");
  refused([&] { cast(x, few, stream); }, "cast: destination of shape [4, 1, 1, 1] has 4 elements, expected 24");
  refused([&] { cast(halves, {nullptr, DType::f32, {24, 1, 1, 1}}, stream); }, "cast: destination of shape [24,");
  refused([&] { cast(x, {x.values.data() + 1, DType::bf16, {24, 1, 1, 1}}, stream); }, "overlap");
  refused([&] { cast({x.values.data() + 11, DType::bf16, {24, 1, 1, 1}}, x, stream); }, "overlap");
}

TEST_F(Checks, Gemm_RefusesShapesThatDoNotChain) {
  refused([&] { gemm(x, Transpose::yes, w, Transpose::no, y, 1, 0, stream); }, "gemm: a has shape [4, 6, 1, 1]");
  refused([&] { gemm(x, Transpose::no, w, Transpose::yes, y, 1, 0, stream); },
          "gemm: b has shape [6, 8, 1, 1], expected [8, 6, 1, 1]");
  const TensorView empty{nullptr, DType::f32, {0, 8, 1, 1}};
  refused([&] { gemm(x, Transpose::no, w, Transpose::no, empty, 1, 0, stream); }, "rows of c is 0");
}

TEST_F(Checks, Linear_RefusesEachWrongTensor) {
  refused([&] { linear_forward(y, w, bias, y, stream); }, "linear_forward: w has shape");
  refused([&] { linear_forward(x, w, row, y, stream); }, "linear_forward: bias");
  refused([&] { linear_forward(x, w, bias, x, stream); }, "linear_forward: y");
  refused([&] { linear_residual_forward(x, w, bias, x, y, stream); }, "linear_residual_forward: residual");
  refused([&] { linear_backward(y, x, w, y, w, bias, stream); }, "linear_backward: dx");
  refused([&] { linear_backward(y, x, w, x, x, bias, stream); }, "linear_backward: dw");
  refused([&] { linear_backward(x, x, w, x, w, bias, stream); }, "linear_backward: dy");
  refused([&] { linear_backward(y, x, w, x, w, row, stream); }, "linear_backward: dbias");
}

TEST_F(Checks, Embedding_RefusesSequencesAndTablesThatDoNotFit) {
  Floats wte({5, 6}), wpe({2, 6});
  refused([&] { embedding_forward(tokens, wte, wpe, x, 4, stream); }, "longer than wpe");
  refused([&] { embedding_forward(tokens, wte, wte, x, 3, stream); }, "multiple of the sequence");
  refused([&] { embedding_forward(tokens, wte, wpe, y, 2, stream); }, "embedding_forward: out");
  refused([&] { embedding_backward(row, x, wte, wpe, 2, stream); }, "embedding_backward: tokens is f32");
  refused([&] { embedding_backward(tokens, x, wte, w, 2, stream); }, "embedding_backward: wpe");
}

TEST_F(Checks, LayerNorm_RefusesEachWrongTensor) {
  Floats six({6});
  refused([&] { layer_norm_forward(x, bias, six, x, row, row, stream); }, "layer_norm_forward: weight");
  refused([&] { layer_norm_forward(x, six, bias, x, row, row, stream); }, "layer_norm_forward: bias");
  refused([&] { layer_norm_forward(x, six, six, x, six, row, stream); }, "layer_norm_forward: mean");
  refused(
      [&] {
        layer_norm_backward({x, six, row, six}, x, x, Write::overwrite, six, six, stream);
      },
      "layer_norm_backward: rstd");
  refused(
      [&] {
        layer_norm_backward({x, six, row, row}, x, x, Write::accumulate, six, six, stream);
      },
      "dx must not be dy");
}

TEST_F(Checks, Attention_RefusesShapesAndSmallWorkspaces) {
  Floats out({4, 8}), lse({1, 2, 4}), three_heads({1, 3, 4}), workspace = workspace_of(attention_workspace_bytes(4, 4));
  refused([&] { attention_forward(wide, out, three_heads, workspace, stream); }, "heads of lse must divide");
  refused([&] { attention_forward(out, out, lse, workspace, stream); }, "attention_forward: qkv has shape");
  refused([&] { attention_forward(wide, out, lse, row, stream); }, "the workspace has 16 bytes, expected at least");
  refused([&] { attention_backward(wide, wide, out, lse, wide, workspace, stream); }, "attention_backward: dout");
  refused([] { static_cast<void>(attention_workspace_bytes(0, 4)); }, "sequence is 0");
}

TEST_F(Checks, CrossEntropy_RefusesShapesAndSmallWorkspaces) {
  Floats wte({5, 6}), workspace = workspace_of(cross_entropy_workspace_bytes(4, 5));
  Tensor<double> loss({1});
  refused([&] { cross_entropy_forward({y, wte, tokens, row, workspace}, loss, stream); }, "cross_entropy_forward: wte");
  refused([&] { cross_entropy_forward({x, wte, tokens, row, row}, loss, stream); }, "the workspace has 16 bytes");
  refused([&] { cross_entropy_forward({x, wte, tokens, row, workspace}, row, stream); }, "cross_entropy_forward: loss");
  refused([&] { cross_entropy_backward({x, wte, tokens, row, workspace}, y, wte, stream); }, "dhidden");
}

TEST_F(Checks, Optimizer_RefusesShapesAndOptions) {
  Tensor<double> scalars({4}), sum({1});
  const auto call = [&](TensorView gradient, TensorView step, const AdamWHyperparameters& options) {
    return [&, gradient, step, options] { adamw(row, gradient, row, row, step, options, true, stream); };
  };
  refused(call(bias, scalars, {}), "adamw: gradient");
  refused(call(row, sum, {}), "adamw: scalars has shape");
  refused(call(row, scalars, {.beta1 = 1}), "beta1 and beta2 must be in [0, 1)");
  refused(call(row, scalars, {.eps = 0}), "eps must be positive");
  refused(call(row, scalars, {.clip = -1}), "clip must not be negative");
  refused(call(row, scalars, {.learning_rate = std::nan("")}), "learning rate");
  refused([&] { sum_squares(row, row, stream); }, "sum_squares: sum");
  refused([&] { advance_step(sum, stream); }, "advance_step: scalars");
}

}  // namespace
}  // namespace headroom::kernels::testing
