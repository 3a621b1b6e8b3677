#include "run/gemm_replay.hpp"

#include <algorithm>

namespace headroom::bench {
namespace {

using kernels::Transpose;

std::array<std::int64_t, 4> stored(std::int64_t rows, std::int64_t columns, Transpose transpose) {
  return transpose == Transpose::no ? std::array<std::int64_t, 4>{rows, columns, 1, 1}
                                    : std::array<std::int64_t, 4>{columns, rows, 1, 1};
}

double seconds_of(std::span<const GemmCall> calls, const Tensor& a, const Tensor& b, const Tensor& c,
                  StreamRef compute) {
  const Device device = compute.device();
  const std::int64_t begin_ns = device.now_ns();
  for (const GemmCall& call : calls) {
    for (std::int64_t repeat = 0; repeat < call.count; ++repeat) {
      kernels::gemm(a.buffer.tensor(DType::f32, stored(call.m, call.k, call.ta)), call.ta,
                    b.buffer.tensor(DType::f32, stored(call.k, call.n, call.tb)), call.tb,
                    c.buffer.tensor(DType::f32, {call.m, call.n, 1, 1}), 1, 0, compute);
    }
  }
  compute.synchronize();
  return static_cast<double>(device.now_ns() - begin_ns) * 1e-9;
}

}  // namespace

double replay_gemms(std::span<const GemmCall> calls, const TensorSource& tensors) {
  std::int64_t a_numel = 1;
  std::int64_t b_numel = 1;
  std::int64_t c_numel = 1;
  double flops = 0;
  for (const GemmCall& call : calls) {
    a_numel = std::max(a_numel, call.m * call.k);
    b_numel = std::max(b_numel, call.k * call.n);
    c_numel = std::max(c_numel, call.m * call.n);
    flops += call.flops();
  }
  const Tensor a = tensors.make("gemm.a", Category::other, -1, {a_numel, 1, 1, 1});
  const Tensor b = tensors.make("gemm.b", Category::other, -1, {b_numel, 1, 1, 1});
  const Tensor c = tensors.make("gemm.c", Category::other, -1, {c_numel, 1, 1, 1});
  const StreamRef compute = tensors.compute();
  for (const TensorView& view : {a.view, b.view, c.view}) kernels::fill(view, 0.5, compute);
  compute.synchronize();

  // Other work of the machine only slows a replay down, so the fastest of a few says what the products can reach.
  constexpr int kReplays = 5;
  constexpr double kEnoughSeconds = 2;
  double fastest = 0;
  double spent = 0;
  for (int replay = 0; replay < kReplays && (replay < 2 || spent < kEnoughSeconds); ++replay) {
    const double seconds = seconds_of(calls, a, b, c, compute);
    fastest = replay == 0 ? seconds : std::min(fastest, seconds);
    spent += seconds;
  }
  return flops / fastest;
}

}  // namespace headroom::bench
