// Kernels at the sizes of the default GPT (width 512, 8 heads, sequence 256, micro-batch 4), beside what they are
// measured against: OpenBLAS on 1024^3 and memcpy. Counters: GFLOP/s as the operation declares them, GB/s moved.
#include <headroom/device.hpp>
#include <headroom/kernels.hpp>

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

namespace headroom::kernels {
namespace {

constexpr std::int64_t kWidth = 512;

/// Owns f32 elements, none of them zero or denormal.
class Tensor {
 public:
  explicit Tensor(std::int64_t rows, std::int64_t columns = 1, std::int64_t depth = 1)
      : values_(static_cast<std::size_t>(rows * columns * depth)), shape_{rows, columns, depth, 1} {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = 0.01F * static_cast<float>(1 + i * 7919 % 101) - 0.5F;
  }
  operator TensorView() { return {values_.data(), DType::f32, shape_}; }  // NOLINT(*-explicit-*)

 private:
  std::vector<float> values_;
  std::array<std::int64_t, 4> shape_;
};

class Bench {
 public:
  /// Times `launch(stream)`, which does `flops` and moves `bytes`.
  template <class Launch>
  void run(benchmark::State& state, double flops, double bytes, const Launch& launch) {
    for (auto unused : state) {
      static_cast<void>(unused);
      launch(stream_.ref());
      stream_.ref().synchronize();
    }
    const auto rate = [&](double each) {
      return benchmark::Counter(each * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
    };
    if (flops > 0) state.counters["GFLOP/s"] = rate(flops);
    if (bytes > 0) state.counters["GB/s"] = rate(bytes);
  }

 private:
  Stream stream_{Device::host()};
};

void gemm(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Tensor a(m, k), b(k, n), c(m, n);
  Bench().run(state, 2.0 * static_cast<double>(m * n * k), 0,
              [&](StreamRef stream) { gemm(a, Transpose::no, b, Transpose::no, c, 1.0F, 0.0F, stream); });
}

void memcpy_64_mib(benchmark::State& state) {
  std::vector<char> from(std::size_t{64} << 20, 1), to(from.size());
  for (auto unused : state) {
    static_cast<void>(unused);
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(from.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void linear(benchmark::State& state, bool backward) {
  const std::int64_t rows = 1024, in = state.range(0), out = state.range(1);
  Tensor x(rows, in), w(in, out), bias(out), y(rows, out), dx(rows, in), dw(in, out), dbias(out);
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  if (backward) {
    Bench().run(state, 2 * flops, 0, [&](StreamRef stream) { linear_backward(y, x, w, dx, dw, dbias, stream); });
  } else {
    Bench().run(state, flops, 0, [&](StreamRef stream) { linear_forward(x, w, bias, y, stream); });
  }
}

void attention(benchmark::State& state, bool backward) {
  const std::int64_t sequence = state.range(0), head_dim = state.range(1), heads = kWidth / head_dim;
  const std::int64_t batch = 1024 / sequence, rows = batch * sequence;
  Tensor qkv(rows, 3 * kWidth), out(rows, kWidth), dout(rows, kWidth), dqkv(rows, 3 * kWidth);
  Tensor lse(batch, heads, sequence);
  Tensor workspace(static_cast<std::int64_t>(attention_workspace_bytes(sequence, head_dim) / sizeof(float)));
  const double product = static_cast<double>(rows * sequence * kWidth);
  Bench bench;
  if (backward) {
    const Stream stream{Device::host()};
    attention_forward(qkv, out, lse, workspace, stream);
    stream.ref().synchronize();
    bench.run(state, 5 * product, 0,
              [&](StreamRef to) { attention_backward(dout, qkv, out, lse, dqkv, workspace, to); });
  } else {
    bench.run(state, 2 * product, 0, [&](StreamRef to) { attention_forward(qkv, out, lse, workspace, to); });
  }
}

void cross_entropy(benchmark::State& state, bool backward) {
  const std::int64_t rows = 1024, vocabulary = state.range(0);
  Tensor hidden(rows, kWidth), wte(vocabulary, kWidth), lse(rows), dhidden(rows, kWidth), dwte(vocabulary, kWidth);
  Tensor workspace(static_cast<std::int64_t>(cross_entropy_workspace_bytes(rows, vocabulary) / sizeof(float)));
  std::vector<std::int32_t> targets(static_cast<std::size_t>(rows), 3);
  double loss = 0;
  const CrossEntropy inputs{hidden, wte, {targets.data(), DType::i32, {rows, 1, 1, 1}}, lse, workspace, 1.0 / 1024};
  const TensorView total{&loss, DType::f64, {1, 1, 1, 1}};
  const double flops = 2.0 * static_cast<double>(rows * kWidth * vocabulary);
  Bench bench;
  if (backward) {
    const Stream stream{Device::host()};
    cross_entropy_forward(inputs, total, stream);
    stream.ref().synchronize();
    bench.run(state, 3 * flops, 0, [&](StreamRef to) { cross_entropy_backward(inputs, dhidden, dwte, to); });
  } else {
    bench.run(state, flops, 0, [&](StreamRef to) { cross_entropy_forward(inputs, total, to); });
  }
}

void layer_norm(benchmark::State& state, bool backward) {
  const std::int64_t rows = 1024;
  Tensor x(rows, kWidth), weight(kWidth), bias(kWidth), y(rows, kWidth), mean(rows), rstd(rows), dx(rows, kWidth);
  const double bytes = 4.0 * static_cast<double>(rows * kWidth);
  if (backward) {
    Bench().run(state, 0, 4 * bytes, [&](StreamRef stream) {
      layer_norm_backward({x, weight, mean, rstd}, y, dx, Write::accumulate, weight, bias, stream);
    });
  } else {
    Bench().run(state, 0, 2 * bytes,
                [&](StreamRef stream) { layer_norm_forward(x, weight, bias, y, mean, rstd, stream); });
  }
}

void gelu(benchmark::State& state, bool backward) {
  Tensor x(1024, 4 * kWidth), y(1024, 4 * kWidth), dx(1024, 4 * kWidth);
  const double bytes = 4.0 * 1024 * 4 * kWidth;
  if (backward) {
    Bench().run(state, 0, 3 * bytes, [&](StreamRef stream) { gelu_backward(y, x, dx, stream); });
  } else {
    Bench().run(state, 0, 2 * bytes, [&](StreamRef stream) { gelu_forward(x, y, stream); });
  }
}

void optimizer(benchmark::State& state, bool update) {
  const std::int64_t count = state.range(0);
  Tensor parameter(count), gradient(count), exp_avg(count), exp_avg_sq(count);
  StepScalars scalars{1, 0, 1, 0};
  const TensorView on_device{&scalars, DType::f64, {4, 1, 1, 1}}, sum{&scalars, DType::f64, {1, 1, 1, 1}};
  Bench bench;
  const Stream stream{Device::host()};
  fill(exp_avg_sq, 0.5, stream);
  stream.ref().synchronize();
  if (update) {
    bench.run(state, 0, 28.0 * static_cast<double>(count),
              [&](StreamRef to) { adamw(parameter, gradient, exp_avg, exp_avg_sq, on_device, {}, true, to); });
  } else {
    bench.run(state, 0, 4.0 * static_cast<double>(count), [&](StreamRef to) { sum_squares(gradient, sum, to); });
  }
}

void normal(benchmark::State& state) {
  Tensor tensor(1 << 20);
  Bench().run(state, 0, 4.0 * (1 << 20), [&](StreamRef stream) { fill_normal(tensor, {}, stream); });
}

BENCHMARK(gemm)->Args({1024, 1024, 1024})->Args({1024, 2048, 512})->MeasureProcessCPUTime();
BENCHMARK(memcpy_64_mib)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(linear, forward, false)
    ->Args({512, 1536})
    ->Args({512, 512})
    ->Args({512, 2048})
    ->Args({2048, 512})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(linear, backward, true)
    ->Args({512, 1536})
    ->Args({512, 512})
    ->Args({512, 2048})
    ->Args({2048, 512})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention, forward, false)
    ->Args({256, 64})
    ->Args({1024, 64})
    ->Args({256, 16})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention, backward, true)
    ->Args({256, 64})
    ->Args({1024, 64})
    ->Args({256, 16})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(cross_entropy, forward, false)->Arg(256)->Arg(50257)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(cross_entropy, backward, true)->Arg(256)->Arg(50257)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(layer_norm, forward, false)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(layer_norm, backward, true)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(gelu, forward, false)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(gelu, backward, true)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(optimizer, adamw, true)->Arg(1 << 16)->Arg(1 << 22)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(optimizer, sum_squares, false)->Arg(1 << 16)->Arg(1 << 22)->MeasureProcessCPUTime();
BENCHMARK(normal)->MeasureProcessCPUTime();

}  // namespace
}  // namespace headroom::kernels

BENCHMARK_MAIN();
