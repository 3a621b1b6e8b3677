#include "workloads/gpt.hpp"

#include "io/hf_gpt2.hpp"

#include <algorithm>
#include <cmath>

namespace headroom::bench {
namespace {

enum EmbeddingParameter : int { wte, wpe, final_norm_weight, final_norm_bias };  // NOLINT(*-use-enum-class)

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

template <class View>  // of a lease: its parameters or its gradients
HalfParameters half_views(const View& view, int first) {
  return {view(first), view(first + 1), view(first + 2), view(first + 3), view(first + 4), view(first + 5)};
}

HalfParameters half_weights(const UnitLease& lease, int first) {
  return half_views([&lease](int index) { return lease.parameter(index); }, first);
}

HalfParameters half_gradients(const UnitLease& lease, int first) {
  return half_views([&lease](int index) { return lease.gradient(index); }, first);
}

}  // namespace

/// One micro-batch on its way through the model.
struct Gpt::Pass {
  StepTransaction& step;
  const MicroBatch& batch;
  const TensorSource& tensors;
  const Gpt& model;
  std::vector<AttentionState> attention{};
  std::vector<MlpState> mlp{};
  Tensor x{}, hidden{}, mean{}, rstd{}, lse{};  // x: what flows between units; the others are the head's.

  [[nodiscard]] BlockShape shape() const {
    return {batch.shape.batch, batch.shape.sequence, model.shape_.width, model.shape_.heads};
  }
  [[nodiscard]] kernels::CrossEntropy cross_entropy(const UnitLease& unit, const Tensor& workspace) const {
    return {hidden.view, unit.parameter(wte), batch.targets, lse.view, workspace.view, batch.loss_scale};
  }
  [[nodiscard]] Tensor loss_workspace() const {
    return tensors.workspace("cross_entropy", model.embedding_,
                             kernels::cross_entropy_workspace_bytes(batch.shape.tokens(), model.shape_.vocabulary));
  }

  void embed();
  void forward(int index);
  void head();
  void head_backward();
  void backward(int index);
  void embed_backward();
};

void Gpt::Pass::embed() {
  UnitLease unit = step.forward(model.embedding_);
  tensors.mark(unit.unit(), "forward", "embedding");
  x = tensors.activation("residual", unit.unit(), batch.shape.tokens(), model.shape_.width);
  kernels::embedding_forward(batch.tokens, unit.parameter(wte), unit.parameter(wpe), x.view, batch.shape.sequence,
                             {tensors.compute(), unit.unit()});
  unit.finish();
}

void Gpt::Pass::forward(int index) {
  UnitLease unit = step.forward(model.blocks_[static_cast<std::size_t>(index)]);
  const int per_unit = model.shape_.halves_per_unit;
  const int end = static_cast<int>(std::min<std::int64_t>(std::int64_t{index + 1} * per_unit, 2 * model.shape_.layers));
  for (int half = index * per_unit; half < end; ++half) {
    const int first = (half - index * per_unit) * kParametersPerHalf;
    const HalfContext context{&tensors, shape(), unit.unit(), half_weights(unit, first)};
    const auto layer = static_cast<std::size_t>(half / 2);
    x = half % 2 == 0 ? attention_forward(context, std::move(x), attention[layer])
                      : mlp_forward(context, std::move(x), mlp[layer]);
  }
  unit.finish();
}

void Gpt::Pass::head() {
  UnitLease unit = step.forward(model.embedding_);
  const kernels::Launch launch{tensors.compute(), unit.unit()};
  tensors.mark(unit.unit(), "forward", "head");
  const std::int64_t rows = batch.shape.tokens();
  hidden = tensors.activation("head.hidden", unit.unit(), rows, model.shape_.width);
  mean = tensors.activation("norm.mean", unit.unit(), rows);
  rstd = tensors.activation("norm.rstd", unit.unit(), rows);
  lse = tensors.activation("head.lse", unit.unit(), rows);
  kernels::layer_norm_forward(x.view, unit.parameter(final_norm_weight), unit.parameter(final_norm_bias), hidden.view,
                              mean.view, rstd.view, launch);
  const Tensor workspace = loss_workspace();
  kernels::cross_entropy_forward(cross_entropy(unit, workspace), step.loss(), launch);
  unit.finish();
}

void Gpt::Pass::head_backward() {
  UnitLease unit = step.backward(model.embedding_);
  const kernels::Launch launch{tensors.compute(), unit.unit()};
  tensors.mark(unit.unit(), "backward", "head");
  Tensor dx = tensors.activation("dresidual", unit.unit(), batch.shape.tokens(), model.shape_.width);
  {
    const Tensor workspace = loss_workspace();
    kernels::cross_entropy_backward(cross_entropy(unit, workspace), dx.view, unit.gradient(wte), launch);
  }
  kernels::layer_norm_backward({x.view, unit.parameter(final_norm_weight), mean.view, rstd.view}, dx.view, dx.view,
                               kernels::Write::overwrite, unit.gradient(final_norm_weight),
                               unit.gradient(final_norm_bias), launch);
  hidden = {};
  mean = {};
  rstd = {};
  lse = {};
  x = std::move(dx);
  unit.finish();
}

void Gpt::Pass::backward(int index) {
  UnitLease unit = step.backward(model.blocks_[static_cast<std::size_t>(index)]);
  const int per_unit = model.shape_.halves_per_unit;
  const int end = static_cast<int>(std::min<std::int64_t>(std::int64_t{index + 1} * per_unit, 2 * model.shape_.layers));
  for (int half = end - 1; half >= index * per_unit; --half) {
    const int first = (half - index * per_unit) * kParametersPerHalf;
    const HalfContext context{&tensors, shape(), unit.unit(), half_weights(unit, first)};
    const auto layer = static_cast<std::size_t>(half / 2);
    if (half % 2 == 0) {
      attention_backward(context, half_gradients(unit, first), attention[layer], x.view);
    } else {
      mlp_backward(context, half_gradients(unit, first), mlp[layer], x.view);
    }
  }
  unit.finish();
}

void Gpt::Pass::embed_backward() {
  UnitLease unit = step.backward(model.embedding_);
  tensors.mark(unit.unit(), "backward", "embedding");
  kernels::embedding_backward(batch.tokens, x.view, unit.gradient(wte), unit.gradient(wpe), batch.shape.sequence,
                              {tensors.compute(), unit.unit()});
  x = {};
  unit.finish();
}

Gpt::Gpt(const GptShape& shape) : shape_(shape) {
  if (shape.layers < 1 || shape.width < 1 || shape.heads < 1 || shape.vocabulary < 1 || shape.positions < 1 ||
      shape.halves_per_unit < 1) {
    throw InvalidInput("model: expected layers, width, heads, vocab and positions of at least 1");
  }
  if (shape.width % shape.heads != 0) {
    throw InvalidInput("model: expected heads that divide the width " + std::to_string(shape.width) + ", found " +
                       std::to_string(shape.heads));
  }
}

std::string Gpt::unit_name(std::int64_t first_half, std::int64_t end_half) const {
  const std::string first = "h." + std::to_string(first_half / 2);
  if (shape_.halves_per_unit == 1) return first + (first_half % 2 == 0 ? ".attn" : ".mlp");
  const std::int64_t last = (end_half - 1) / 2;
  return last == first_half / 2 ? first : first + "-" + std::to_string(last);
}

void Gpt::add_units(ParameterManager& parameters) {
  const std::vector<Gpt2Unit> units =
      gpt2_units({shape_.layers, shape_.width, shape_.heads, shape_.vocabulary, shape_.positions});
  std::vector<ParameterSpec> embedding;
  for (const NamedShape& tensor : units.front().tensors) embedding.push_back(parameter(tensor, shape_.layers));
  embedding_ = parameters.add_unit(units.front().name, std::move(embedding));
  blocks_.clear();
  const std::int64_t halves = 2 * shape_.layers;
  for (std::int64_t first = 0; first < halves; first += shape_.halves_per_unit) {
    const std::int64_t end = std::min(halves, first + shape_.halves_per_unit);
    std::vector<ParameterSpec> specs;
    for (std::int64_t half = first; half < end; ++half) {
      const Gpt2Unit& block = units[static_cast<std::size_t>(1 + half / 2)];
      for (int index = 0; index < kParametersPerHalf; ++index) {
        const auto at = static_cast<std::size_t>((half % 2) * kParametersPerHalf + index);
        specs.push_back(parameter(block.tensors[at], shape_.layers));
      }
    }
    blocks_.push_back(parameters.add_unit(unit_name(first, end), std::move(specs)));
  }
  std::vector<int> forward{embedding_};
  forward.insert(forward.end(), blocks_.begin(), blocks_.end());
  forward.push_back(embedding_);
  parameters.declare_path("default", forward, {forward.rbegin(), forward.rend()});
}

void Gpt::run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) {
  Pass pass{step, batch, tensors, *this};
  pass.attention.resize(static_cast<std::size_t>(shape_.layers));
  pass.mlp.resize(static_cast<std::size_t>(shape_.layers));
  const int units = static_cast<int>(blocks_.size());
  pass.embed();
  for (int index = 0; index < units; ++index) pass.forward(index);
  pass.head();
  pass.head_backward();
  for (int index = units - 1; index >= 0; --index) pass.backward(index);
  pass.embed_backward();
}

double Gpt::model_flops_per_token(std::int64_t sequence) const {
  const auto layers = static_cast<double>(shape_.layers);
  const auto width = static_cast<double>(shape_.width);
  const double matmul_parameters = 12 * layers * width * width + static_cast<double>(shape_.vocabulary) * width;
  return 6 * matmul_parameters + 6 * layers * width * static_cast<double>(sequence);
}

std::vector<GemmCall> Gpt::gemm_calls(const BatchShape& shape) const {
  using kernels::Transpose;
  const std::int64_t rows = shape.tokens();
  std::vector<GemmCall> calls;
  const auto forward = [&](std::int64_t in, std::int64_t out) { calls.push_back({rows, out, in}); };
  const auto backward = [&](std::int64_t in, std::int64_t out) {
    calls.push_back({rows, in, out, Transpose::no, Transpose::yes});  // dx = dy w^T
    calls.push_back({in, out, rows, Transpose::yes, Transpose::no});  // dw = x^T dy
  };
  const std::int64_t width = shape_.width;
  const std::array<std::array<std::int64_t, 2>, 4> linears{
      {{width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}}};
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (const auto& linear : linears) forward(linear[0], linear[1]);
  }
  for (int pass = 0; pass < 2; ++pass) {  // logits: for the loss, and again in backward
    calls.push_back({rows, shape_.vocabulary, width, Transpose::no, Transpose::yes});
  }
  calls.push_back({rows, width, shape_.vocabulary});
  calls.push_back({shape_.vocabulary, width, rows, Transpose::yes, Transpose::no});
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (auto linear = linears.rbegin(); linear != linears.rend(); ++linear) backward((*linear)[0], (*linear)[1]);
  }
  return calls;
}

}  // namespace headroom::bench
