// A trainer outside the project: a small MLP learns y = x * x / 4, sharded over the ranks of mpirun, or alone.
#include <headroom/headroom.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace headroom;

namespace {

constexpr int kLayers = 3, kSteps = 60;
constexpr std::int64_t kRows = 64, kWidth = 32;

struct Mlp {
  CachingAllocator& memory;
  StreamRef compute;

  Buffer activation() {
    return memory.allocate({.bytes = kRows * kWidth * sizeof(float), .category = Category::activation, .name = "x"},
                           compute);
  }
  static TensorView view(const Buffer& x) { return x.tensor(DType::f32, {kRows, kWidth, 1, 1}); }

  /// One step: x[0] is the input, x[2i + 1] layer i's product, x[2i + 2] its output.
  StepReport step(ParameterManager& params, AdamW& adamw, int rank, int world) {
    StepTransaction step = params.begin_step();
    std::vector<Buffer> x;
    x.push_back(activation());
    kernels::fill_normal(view(x[0]), {.key = static_cast<std::uint64_t>(rank), .stddev = 1}, compute);
    for (int layer = 0; layer < kLayers; ++layer) {
      UnitLease unit = step.forward(layer);
      x.push_back(activation());
      kernels::linear_forward(view(x[x.size() - 2]), unit.parameter("weight"), unit.parameter("bias"), view(x.back()),
                              compute);
      x.push_back(activation());
      kernels::gelu_forward(view(x[x.size() - 2]), view(x.back()), compute);
      unit.finish();
    }
    Buffer gradient = activation();
    compute.enqueue({.name = "loss",
                     .host = [in = view(x[0]).as<float>(), out = view(x.back()).as<float>(),
                              to = view(gradient).as<float>(), loss = step.loss().as<double>(), world] {
                       for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
                         const float error = out[i] - in[i] * in[i] / 4;
                         const float scale = 1.0F / static_cast<float>(kRows * kWidth * world);
                         *loss += 0.5 * static_cast<double>(error * error * scale);
                         to[i] = error * scale;
                       }
                     }});
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const auto at = static_cast<std::size_t>(2 * layer);
      UnitLease unit = step.backward(layer);
      kernels::gelu_backward(view(gradient), view(x[at + 1]), view(gradient), compute);
      Buffer below = activation();
      kernels::linear_backward(view(gradient), view(x[at]), unit.parameter("weight"), view(below),
                               unit.gradient("weight"), unit.gradient("bias"), compute);
      unit.finish();
      gradient = std::move(below);
      x.resize(at + 1);
    }
    return step.commit(adamw);
  }
};

int train() {
  const Job job = Job::from_environment();
  CachingAllocator memory{job.device(), {.limit_bytes = 256U << 20U}};
  const Stream compute{job.device()};
  ParameterManager params{job.communicators(), memory, compute};
  for (int layer = 0; layer < kLayers; ++layer) {
    params.add_unit("layer" + std::to_string(layer), {{"weight", {kWidth, kWidth}, normal(0.2F)}, {"bias", {kWidth}}});
  }
  params.set_policy(backward_pre({.forward_prefetch = 1}));
  AdamW adamw{params, {.learning_rate = 1e-2}};
  Mlp model{memory, compute};
  const double first = model.step(params, adamw, job.rank(), job.world()).loss();
  double last = first;
  for (int i = 1; i < kSteps; ++i) {
    last = model.step(params, adamw, job.rank(), job.world()).loss();
  }
  params.finish();
  if (job.rank() == 0) {
    std::printf("loss %.5f -> %.5f, peak %zu KiB a rank\n", first, last,
                memory.statistics().allocated_bytes.peak / 1024);
  }
  return last < 0.2 * first ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return train();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainer: error: %s\n", error.what());
    return 1;
  }
}
