// What a stage is made of, before it computes anything.
#include "workloads/stage.hpp"

#include <cmath>

namespace headroom::bench {
namespace {

using kernels::Transpose;

constexpr float kDeviation = 0.02F;

struct Matrix {
  std::int64_t in = 0, out = 0;
};

/// The matrices that a stage multiplies rows by, in forward order.
std::vector<Matrix> matrices_of(const Stage& stage, const ModelShape& model) {
  switch (stage.kind) {
    case Stage::Kind::projection: return {{model.width, model.width}};
    case Stage::Kind::mlp: return {{model.width, stage.hidden}, {stage.hidden, model.width}};
    case Stage::Kind::head: return {{model.width, model.vocab}};
    case Stage::Kind::embedding:
    case Stage::Kind::gain: break;
  }
  return {};
}

}  // namespace

std::vector<ParameterSpec> parameters_of(const Stage& stage, const ModelShape& model) {
  const std::int64_t width = model.width;
  switch (stage.kind) {
    case Stage::Kind::embedding:
      return {{"wte", {model.vocab, width}, normal(kDeviation)},
              {"wpe", {model.positions, width}, normal(kDeviation), true}};
    case Stage::Kind::gain: return {{"weight", {1, 1}, constant(1)}, {"bias", {1}, constant(0)}};
    case Stage::Kind::projection:
      return {{"weight", {width, width}, normal(0.5F / std::sqrt(static_cast<float>(width))), true},
              {"bias", {width}, constant(0), true}};
    case Stage::Kind::mlp:
      return {{"norm.weight", {width}, constant(1)},
              {"norm.bias", {width}, constant(0)},
              {"in.weight", {width, stage.hidden}, normal(kDeviation)},
              {"in.bias", {stage.hidden}, constant(0)},
              {"out.weight", {stage.hidden, width}, normal(kDeviation)},
              {"out.bias", {width}, constant(0)}};
    case Stage::Kind::head: break;
  }
  return {{"norm.weight", {width}, constant(1)},
          {"norm.bias", {width}, constant(0)},
          {"output", {model.vocab, width}, normal(kDeviation)}};
}

const char* operation_of(const Stage& stage) noexcept {
  switch (stage.kind) {
    case Stage::Kind::embedding: return "embedding";
    case Stage::Kind::gain: return "gain";
    case Stage::Kind::projection: return "projection";
    case Stage::Kind::mlp: return "mlp";
    case Stage::Kind::head: break;
  }
  return "head";
}

double model_flops_per_token(const Stage& stage, const ModelShape& model) {
  const double flops = stage.kind == Stage::Kind::projection ? 4 : 6;
  double parameters = 0;
  for (const Matrix& matrix : matrices_of(stage, model)) parameters += static_cast<double>(matrix.in * matrix.out);
  return flops * parameters;
}

void add_forward_gemms(const Stage& stage, const ModelShape& model, std::int64_t rows, std::vector<GemmCall>& calls) {
  if (stage.kind == Stage::Kind::gain) calls.push_back({rows * model.width, 1, 1});
  const Transpose transposed = stage.kind == Stage::Kind::head ? Transpose::yes : Transpose::no;
  for (const Matrix& matrix : matrices_of(stage, model)) {
    calls.push_back({rows, matrix.out, matrix.in, Transpose::no, transposed});
  }
}

void add_backward_gemms(const Stage& stage, const ModelShape& model, Recompute recompute, std::int64_t rows,
                        std::vector<GemmCall>& calls) {
  const std::vector<Matrix> matrices = matrices_of(stage, model);
  switch (stage.kind) {
    case Stage::Kind::embedding: return;
    case Stage::Kind::gain:
      calls.push_back({rows * model.width, 1, 1, Transpose::no, Transpose::yes});
      calls.push_back({1, 1, rows * model.width, Transpose::yes, Transpose::no});
      return;
    case Stage::Kind::head:  // the logits are computed again
      calls.push_back({rows, model.vocab, model.width, Transpose::no, Transpose::yes});
      calls.push_back({rows, model.width, model.vocab});
      calls.push_back({model.vocab, model.width, rows, Transpose::yes, Transpose::no});
      return;
    case Stage::Kind::mlp:
      if (recompute == Recompute::unit) calls.push_back({rows, matrices[0].out, matrices[0].in});
      break;
    case Stage::Kind::projection: break;
  }
  for (auto matrix = matrices.rbegin(); matrix != matrices.rend(); ++matrix) {
    calls.push_back({rows, matrix->in, matrix->out, Transpose::no, Transpose::yes});  // dx = dy w^T
    if (stage.kind == Stage::Kind::projection) continue;
    calls.push_back({matrix->in, matrix->out, rows, Transpose::yes, Transpose::no});  // dw = x^T dy
  }
}

}  // namespace headroom::bench
