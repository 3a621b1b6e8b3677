#include "tensors.hpp"

#include <thread>

namespace headroom::kernels::testing {
namespace {

/// One rank's work with all kinds of kernels; returns what it computed.
std::vector<float> work() {
  const Device device = Device::host();
  const Stream stream{device};
  Random random(11);
  Floats x = random.floats({32, 24}), w = random.floats({24, 72}), bias = random.floats({72}), qkv({32, 72});
  Floats out({32, 24}), lse({2, 3, 16}), attention_space = workspace_of(attention_workspace_bytes(16, 8));
  Floats wte = random.floats({600, 24}), row_lse({32}),
         head_space = workspace_of(cross_entropy_workspace_bytes(32, 600));
  Floats dhidden({32, 24}), dwte({600, 24});
  Tokens targets = random.tokens(32, 600);
  Tensor<double> loss({1});
  for (int repeat = 0; repeat < 5; ++repeat) {
    linear_forward(x, w, bias, qkv, stream);
    attention_forward(qkv, out, lse, attention_space, stream);
    gelu_forward(out, out, stream);
    const CrossEntropy inputs{out, wte, targets, row_lse, head_space, 1.0 / 32};
    cross_entropy_forward(inputs, loss, stream);
    cross_entropy_backward(inputs, dhidden, dwte, stream);
    accumulate(dhidden, x, stream);
  }
  stream.ref().synchronize();
  std::vector<float> result = dwte.values;
  result.push_back(static_cast<float>(loss.values[0]));
  return result;
}

TEST(Kernels, RanksAsThreads_ComputeTheSameBits) {
  const std::vector<float> expected = work();
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> ranks;
  ranks.reserve(results.size());
  for (auto& result : results) ranks.emplace_back([&result] { result = work(); });
  for (std::thread& rank : ranks) rank.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace headroom::kernels::testing
