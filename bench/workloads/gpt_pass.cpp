#include "workloads/gpt_pass.hpp"

namespace headroom::bench {
namespace {

constexpr int kEmbedding = 0;                                                    // the unit; blocks follow
enum EmbeddingParameter : int { wte, wpe, final_norm_weight, final_norm_bias };  // NOLINT(*-use-enum-class)

bool is_attention(int half) { return half % 2 == 0; }
std::size_t layer_of(int half) { return static_cast<std::size_t>(half / 2); }
const char* name_of(int half) { return is_attention(half) ? "attention" : "mlp"; }

HalfParameters gradients_of(const UnitLease& unit, int index) {
  const auto view = [&](int of_half) { return unit.gradient(index * kParametersPerHalf + of_half); };
  return {view(0), view(1), view(2), view(3), view(4), view(5)};
}

}  // namespace

Gpt::Pass::Pass(const Gpt& model, StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors)
    : model_(model),
      step_(step),
      batch_(batch),
      tensors_(tensors),
      shape_{batch.shape.batch, batch.shape.sequence, model.shape_.width, model.shape_.heads},
      attention_(static_cast<std::size_t>(model.shape_.layers)),
      mlp_(static_cast<std::size_t>(model.shape_.layers)),
      inputs_(static_cast<std::size_t>(model.block_units())) {}

HalfContext Gpt::Pass::context(const UnitLease& unit, const WideParameters& weights) const {
  return {&tensors_, shape_, unit.unit(), {weights[0], weights[1], weights[2], weights[3], weights[4], weights[5]}};
}

/// Of the unit's index-th half.
WideParameters Gpt::Pass::weights_of(const UnitLease& unit, int index) const {
  return {tensors_, unit, index * kParametersPerHalf, kParametersPerHalf};
}

Tensor Gpt::Pass::loss_workspace() const {
  return tensors_.workspace("cross_entropy", kEmbedding,
                            kernels::cross_entropy_workspace_bytes(shape_.rows(), model_.shape_.vocab));
}

kernels::CrossEntropy Gpt::Pass::cross_entropy(TensorView embedding, const Tensor& workspace) const {
  return {hidden_.view, embedding, batch_.targets, lse_.view, workspace.view, batch_.loss_scale};
}

void Gpt::Pass::half_inner(const HalfContext& self, Tensor input, int half) {
  if (is_attention(half)) {
    attention_inner(self, std::move(input), attention_[layer_of(half)]);
  } else {
    mlp_inner(self, std::move(input), mlp_[layer_of(half)]);
  }
}

Tensor Gpt::Pass::half_output(const HalfContext& self, int half) const {
  return is_attention(half) ? attention_output(self, attention_[layer_of(half)])
                            : mlp_output(self, mlp_[layer_of(half)]);
}

void Gpt::Pass::keep_input_only(int block_unit, int half) {
  Tensor& input = is_attention(half) ? attention_[layer_of(half)].x : mlp_[layer_of(half)].x;
  if (half == model_.halves_of(block_unit).begin) inputs_[static_cast<std::size_t>(block_unit)] = std::move(input);
  if (is_attention(half)) {
    attention_[layer_of(half)] = {};
  } else {
    mlp_[layer_of(half)] = {};
  }
}

void Gpt::Pass::embed() {
  UnitLease unit = step_.forward(kEmbedding);
  tensors_.mark(unit.unit(), "forward", "embedding");
  const WideParameters tables(tensors_, unit, wte, 2);
  x_ = tensors_.activation("residual", unit.unit(), shape_.rows(), shape_.width);
  kernels::embedding_forward(batch_.tokens, tables[wte], tables[wpe], x_.view, shape_.sequence,
                             {tensors_.compute(), unit.unit()});
  unit.finish();
}

void Gpt::Pass::forward(int block_unit) {
  UnitLease unit = step_.forward(1 + block_unit);
  const Halves halves = model_.halves_of(block_unit);
  for (int half = halves.begin; half < halves.end; ++half) {
    tensors_.mark(unit.unit(), "forward", name_of(half));
    const WideParameters weights = weights_of(unit, half - halves.begin);
    half_inner(context(unit, weights), std::move(x_), half);
    x_ = half_output(context(unit, weights), half);
    if (model_.recompute_ == Recompute::unit) keep_input_only(block_unit, half);
  }
  unit.finish();
}

void Gpt::Pass::head() {
  UnitLease unit = step_.forward(kEmbedding);
  tensors_.mark(unit.unit(), "forward", "head");
  const kernels::Launch launch{tensors_.compute(), unit.unit()};
  hidden_ = tensors_.activation("head.hidden", unit.unit(), shape_.rows(), shape_.width);
  mean_ = tensors_.activation("norm.mean", unit.unit(), shape_.rows());
  rstd_ = tensors_.activation("norm.rstd", unit.unit(), shape_.rows());
  lse_ = tensors_.activation("head.lse", unit.unit(), shape_.rows());
  const WideParameters norm(tensors_, unit, final_norm_weight, 2);
  kernels::layer_norm_forward(x_.view, norm[0], norm[1], hidden_.view, mean_.view, rstd_.view, launch);
  const WideParameters table(tensors_, unit, wte, 1);
  const Tensor workspace = loss_workspace();
  kernels::cross_entropy_forward(cross_entropy(table[0], workspace), step_.loss(), launch);
  unit.finish();
}

void Gpt::Pass::head_backward() {
  UnitLease unit = step_.backward(kEmbedding);
  tensors_.mark(unit.unit(), "backward", "head");
  const kernels::Launch launch{tensors_.compute(), unit.unit()};
  Tensor dx = tensors_.activation("dresidual", unit.unit(), shape_.rows(), shape_.width);
  {
    const WideParameters table(tensors_, unit, wte, 1);
    const Tensor workspace = loss_workspace();
    kernels::cross_entropy_backward(cross_entropy(table[0], workspace), dx.view, unit.gradient(wte), launch);
  }
  const WideParameters norm(tensors_, unit, final_norm_weight, 1);
  kernels::layer_norm_backward({x_.view, norm[0], mean_.view, rstd_.view}, dx.view, dx.view, kernels::Write::overwrite,
                               unit.gradient(final_norm_weight), unit.gradient(final_norm_bias), launch);
  hidden_ = {};
  mean_ = {};
  rstd_ = {};
  lse_ = {};
  x_ = std::move(dx);
  unit.finish();
}

void Gpt::Pass::recompute(const UnitLease& unit, int block_unit) {
  const Halves halves = model_.halves_of(block_unit);
  Tensor input = std::move(inputs_[static_cast<std::size_t>(block_unit)]);
  for (int half = halves.begin; half < halves.end; ++half) {
    tensors_.mark(unit.unit(), "backward", "recompute");
    const WideParameters weights = weights_of(unit, half - halves.begin);
    half_inner(context(unit, weights), std::move(input), half);
    input = half + 1 < halves.end ? half_output(context(unit, weights), half) : Tensor{};
  }
}

void Gpt::Pass::backward(int block_unit) {
  UnitLease unit = step_.backward(1 + block_unit);
  const Halves halves = model_.halves_of(block_unit);
  if (model_.recompute_ == Recompute::unit) recompute(unit, block_unit);
  for (int half = halves.end - 1; half >= halves.begin; --half) {
    tensors_.mark(unit.unit(), "backward", name_of(half));
    const int index = half - halves.begin;
    const WideParameters weights = weights_of(unit, index);
    if (is_attention(half)) {
      attention_backward(context(unit, weights), gradients_of(unit, index), attention_[layer_of(half)], x_.view);
    } else {
      mlp_backward(context(unit, weights), gradients_of(unit, index), mlp_[layer_of(half)], x_.view);
    }
  }
  unit.finish();
}

void Gpt::Pass::embed_backward() {
  UnitLease unit = step_.backward(kEmbedding);
  tensors_.mark(unit.unit(), "backward", "embedding");
  kernels::embedding_backward(batch_.tokens, x_.view, unit.gradient(wte), unit.gradient(wpe), shape_.sequence,
                              {tensors_.compute(), unit.unit()});
  x_ = {};
  unit.finish();
}

}  // namespace headroom::bench
