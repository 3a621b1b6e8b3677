#include "workloads/gpt.hpp"

#include "io/hf_gpt2.hpp"
#include "workloads/gpt_pass.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::bench {
namespace {

/// With GPT-2's initialisation: matrices from N(0, 0.02), those that end a residual branch narrower by the branches.
ParameterSpec parameter(const NamedShape& tensor, std::int64_t layers) {
  constexpr double kDeviation = 0.02;
  const bool is_matrix = tensor.shape.size() > 1;
  const bool ends_branch = tensor.name.ends_with(".c_proj.weight");
  const double deviation = ends_branch ? kDeviation / std::sqrt(2.0 * static_cast<double>(layers)) : kDeviation;
  const Initializer initializer =
      is_matrix ? normal(static_cast<float>(deviation)) : constant(tensor.name.ends_with(".weight") ? 1 : 0);
  return {tensor.name, tensor.shape, initializer};
}

struct Linear {
  std::int64_t in = 0, out = 0;
};

/// The two of a half, in forward order.
std::array<Linear, 2> linears_of(int half, std::int64_t width) {
  if (half % 2 == 0) return {{{width, 3 * width}, {width, width}}};
  return {{{width, 4 * width}, {4 * width, width}}};
}

}  // namespace

Gpt::Gpt(const ModelShape& shape, const Wrap& wrap, Recompute recompute)
    : shape_(shape), wrap_(wrap), recompute_(recompute) {
  if (shape.layers < 1 || shape.width < 1 || shape.heads < 1 || shape.vocab < 1 || shape.positions < 1 ||
      wrap.halves_per_unit() < 1) {
    throw InvalidInput("model: expected layers, width, heads, vocab, positions and blocks of a unit of at least 1");
  }
  if (shape.width % shape.heads != 0) {
    throw InvalidInput("model: expected heads that divide the width " + std::to_string(shape.width) + ", found " +
                       std::to_string(shape.heads));
  }
}

Gpt::Halves Gpt::halves_of(int block_unit) const noexcept {
  const int per_unit = wrap_.halves_per_unit();
  return {block_unit * per_unit, std::min((block_unit + 1) * per_unit, static_cast<int>(2 * shape_.layers))};
}

int Gpt::block_units() const noexcept {
  const int per_unit = wrap_.halves_per_unit();
  return (static_cast<int>(2 * shape_.layers) + per_unit - 1) / per_unit;
}

std::vector<UnitSpec> Gpt::units() const {
  std::vector<UnitSpec> specs;
  for (const Gpt2Unit& unit : gpt2_units(shape_, wrap_)) {
    UnitSpec spec{unit.name, {}};
    for (const NamedShape& tensor : unit.tensors) spec.parameters.push_back(parameter(tensor, shape_.layers));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<PathSpec> Gpt::paths() const { return {{"default", gpt2_forward_path(gpt2_units(shape_, wrap_))}}; }

void Gpt::run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) {
  Pass pass(*this, step, batch, tensors);
  pass.embed();
  for (int unit = 0; unit < block_units(); ++unit) pass.forward(unit);
  pass.head();
  pass.head_backward();
  for (int unit = block_units() - 1; unit >= 0; --unit) pass.backward(unit);
  pass.embed_backward();
}

double Gpt::model_flops_per_token(std::int64_t sequence) const {
  const auto layers = static_cast<double>(shape_.layers);
  const auto width = static_cast<double>(shape_.width);
  const double matmul_parameters = 12 * layers * width * width + static_cast<double>(shape_.vocab) * width;
  return 6 * matmul_parameters + 6 * layers * width * static_cast<double>(sequence);
}

std::vector<GemmCall> Gpt::gemm_calls(const BatchShape& shape) const {
  using kernels::Transpose;
  const std::int64_t rows = shape.tokens();
  const std::int64_t width = shape_.width;
  std::vector<GemmCall> calls;
  const auto forward = [&](const Linear& linear) { calls.push_back({rows, linear.out, linear.in}); };
  const auto backward = [&](const Linear& linear) {
    calls.push_back({rows, linear.in, linear.out, Transpose::no, Transpose::yes});  // dx = dy w^T
    calls.push_back({linear.in, linear.out, rows, Transpose::yes, Transpose::no});  // dw = x^T dy
  };
  for (int half = 0; half < 2 * shape_.layers; ++half) {
    for (const Linear& linear : linears_of(half, width)) forward(linear);
  }
  for (int pass = 0; pass < 2; ++pass) {  // logits: for the loss, and again in backward
    calls.push_back({rows, shape_.vocab, width, Transpose::no, Transpose::yes});
  }
  calls.push_back({rows, width, shape_.vocab});
  calls.push_back({shape_.vocab, width, rows, Transpose::yes, Transpose::no});
  for (int unit = block_units() - 1; unit >= 0; --unit) {
    const Halves halves = halves_of(unit);
    for (int half = halves.begin; recompute_ == Recompute::unit && half < halves.end; ++half) {
      const std::array<Linear, 2> linears = linears_of(half, width);
      forward(linears[0]);
      if (half + 1 < halves.end) forward(linears[1]);
    }
    for (int half = halves.end - 1; half >= halves.begin; --half) {
      const std::array<Linear, 2> linears = linears_of(half, width);
      backward(linears[1]);
      backward(linears[0]);
    }
  }
  return calls;
}

}  // namespace headroom::bench
