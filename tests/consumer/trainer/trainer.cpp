// A recurrent net learns to continue sums of sines. Alone, under mpirun, or on N threads as ranks: trainer [N]
#include <cmath>
#include <cstdio>
#include <headroom/headroom.hpp>
using namespace headroom;
using namespace headroom::kernels;
constexpr int kTime = 16, kSteps = 200, kSeries = 32, kWidth = 32;  // kSeries: of all ranks together
struct KeepSmall final : SchedulePolicy {  // a policy of our own: small units stay gathered from forward to backward
  Schedule plan(const PlanInput& input) const override {
    PrefetchOptions options{.forward_prefetch = 1, .limit_reduce_scatters = 2, .keep = PrefetchOptions::Keep::named};
    for (const ScheduleUnit& unit : input.units)
      if (unit.parameter_bytes < 4096) options.keep_units.push_back(unit.name);
    return backward_pre(options)->plan(input);
  }
  std::string describe() const override { return "BACKWARD_PRE that keeps units of less than 4 KiB"; }
};

void train(const Job& job) {
  CachingAllocator memory{job.device(), {.limit_bytes = 64U << 20U}};
  const Stream stream{job.device()};
  ParameterManager params{job.communicators(), memory, stream};
  const ParameterSpec back{"back", {kWidth, kWidth}, normal(0.1F)}, bias{"bias", {kWidth}};
  params.add_unit("layer0", {{"in", {1, kWidth}, normal(0.5F)}, back, bias});
  params.add_unit("layer1", {{"in", {kWidth, kWidth}, normal(0.2F)}, back, bias});
  params.add_unit("readout", {{"in", {kWidth, 1}, normal(0.1F)}, {"bias", {1}}});
  params.set_policy(std::make_shared<KeepSmall>());
  AdamW adamw{params, {.learning_rate = 5e-3}};
  const int series = kSeries / job.world(), rows = kTime * series;  // a row is one series at one time
  auto tensor = [&, buffers = std::vector<Buffer>()](std::int64_t columns) mutable {
    buffers.push_back(memory.allocate({sizeof(float) * rows * columns, Category::activation, "rnn"}, stream));
    return buffers.back().tensor(DType::f32, {rows, columns, 1, 1});
  };
  const auto at = [=](const TensorView& all, int t) {  // the rows of one time
    return TensorView{all.as<float>() + t * series * kWidth, DType::f32, {series, kWidth, 1, 1}};
  };
  const TensorView x[]{tensor(1), tensor(kWidth), tensor(kWidth)}, z[]{tensor(kWidth), tensor(kWidth), tensor(1)};
  const TensorView d[]{tensor(1), tensor(kWidth), tensor(kWidth), tensor(1)};  // d[u]: of x[u], then of z[u - 1]
  for (int row = 0; row < rows; ++row) {
    const double t = 40.0 * (job.rank() * series + row % series) + 0.5 * (row / series);
    x[0].as<float>()[row] = static_cast<float>(std::sin(t) + std::sin(0.6 * t));
  }
  for (int i = 1; i <= kSteps; ++i) {
    StepTransaction step = params.begin_step();
    for (int u = 0; u < 3; ++u) {
      UnitLease unit = step.forward(u);  // gathered; the next one is being gathered
      linear_forward(x[u], unit.parameter("in"), unit.parameter("bias"), z[u], stream);
      for (int t = 0; u < 2 && t < kTime; ++t) {
        if (t > 0) gemm(at(x[u + 1], t - 1), {}, unit.parameter("back"), {}, at(z[u], t), 1, 1, stream);
        gelu_forward(at(z[u], t), at(x[u + 1], t), stream);
      }
      unit.finish();  // released
    }
    const auto loss = [=, sum = step.loss().as<double>()] {  // each row but the last ones is to say what follows it
      for (int row = 0; row < rows; ++row) {
        const float error = row + series < rows ? z[2].as<float>()[row] - x[0].as<float>()[row + series] : 0;
        *sum += error * error / (kTime * kSeries);
        d[3].as<float>()[row] = 2 * error / (kTime * kSeries);
      }
    };
    stream.ref().enqueue({.name = "loss", .host = loss});
    for (int u = 2; u >= 0; --u) {
      UnitLease unit = step.backward(u);
      for (int t = kTime - 1; u < 2 && t >= 0; --t) {
        gelu_backward(at(d[u + 1], t), at(z[u], t), at(d[u + 1], t), stream);
        if (t > 0) gemm(at(x[u + 1], t - 1), Transpose::yes, at(d[u + 1], t), {}, unit.gradient("back"), 1, 1, stream);
        if (t > 0) gemm(at(d[u + 1], t), {}, unit.parameter("back"), Transpose::yes, at(d[u + 1], t - 1), 1, 1, stream);
      }
      linear_backward(d[u + 1], x[u], unit.parameter("in"), d[u], unit.gradient("in"), unit.gradient("bias"), stream);
      unit.finish();  // released, and its gradient is reduce-scattered
    }
    const StepReport report = step.commit(adamw);  // norm, vote, update; or StepAborted, the same on every rank
    if (i == 1 || i == kSteps) std::printf("rank %d, step %d: loss %.5f\n", job.rank(), i, report.loss());
  }
  std::printf("rank %d: parameters %08x\n", job.rank(), params.crc32c());
  params.finish();
}

int main(int argc, char** argv) {
  argc > 1 ? run_ranks(std::stoi(argv[1]), {}, {}, train) : train(Job::from_environment());
}
