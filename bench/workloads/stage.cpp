#include "workloads/stage.hpp"

#include "workloads/wide_parameters.hpp"

namespace headroom::bench {
namespace {

kernels::Launch launch_of(const StageContext& context, const UnitLease& unit) {
  return {context.tensors->compute(), unit.unit()};
}

Tensor residual(const StageContext& context, const UnitLease& unit, const char* name = "residual") {
  return context.tensors->activation(name, unit.unit(), context.rows(), context.width);
}

/// Every number of x [n,C] as a row of its own.
TensorView as_column(const Tensor& x) { return {x.view.data, x.view.dtype, {x.view.numel(), 1, 1, 1}}; }

HalfContext mlp_context(const StageContext& context, const UnitLease& unit, const WideParameters& weights) {
  return {context.tensors,
          context.block(),
          unit.unit(),
          {weights[0], weights[1], weights[2], weights[3], weights[4], weights[5]}};
}

Tensor embedding_forward(const StageContext& context, const UnitLease& unit) {
  const WideParameters tables(*context.tensors, unit, 0, 2);
  Tensor y = residual(context, unit);
  kernels::embedding_forward(context.batch->tokens, tables[0], tables[1], y.view, context.batch->shape.sequence,
                             launch_of(context, unit));
  return y;
}

/// The kernel wants a place for the gradient of the frozen positions too, which nobody reads.
void embedding_backward(const StageContext& context, const UnitLease& unit, const Tensor& dy) {
  const Tensor unread = context.tensors->make("frozen.gradient", Category::workspace, unit.unit(),
                                              {unit.parameter(1).shape[0], context.width, 1, 1});
  kernels::fill(unread.view, 0, launch_of(context, unit));
  kernels::embedding_backward(context.batch->tokens, dy.view, unit.gradient(0), unread.view,
                              context.batch->shape.sequence, launch_of(context, unit));
}

Tensor gain_forward(const StageContext& context, const UnitLease& unit, Tensor x, StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, 2);
  Tensor y = residual(context, unit);
  kernels::linear_forward(as_column(x), weights[0], weights[1], as_column(y), launch_of(context, unit));
  state.x = std::move(x);
  return y;
}

Tensor gain_backward(const StageContext& context, const UnitLease& unit, const Tensor& dy, StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, 1);
  Tensor dx = residual(context, unit, "dresidual");
  kernels::linear_backward(as_column(dy), as_column(state.x), weights[0], as_column(dx), unit.gradient(0),
                           unit.gradient(1), launch_of(context, unit));
  return dx;
}

Tensor projection_forward(const StageContext& context, const UnitLease& unit, const Tensor& x) {
  const WideParameters weights(*context.tensors, unit, 0, 2);
  Tensor y = residual(context, unit);
  kernels::linear_residual_forward(x.view, weights[0], weights[1], x.view, y.view, launch_of(context, unit));
  return y;
}

Tensor projection_backward(const StageContext& context, const UnitLease& unit, const Tensor& dy) {
  const WideParameters weights(*context.tensors, unit, 0, 1);
  Tensor dx = residual(context, unit, "dresidual");
  kernels::copy(dy.view, dx.view, launch_of(context, unit));
  kernels::gemm(dy.view, kernels::Transpose::no, weights[0], kernels::Transpose::yes, dx.view, 1, 1,
                launch_of(context, unit));
  return dx;
}

Tensor mlp_forward(const StageContext& context, const UnitLease& unit, Tensor x, StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, kParametersPerHalf);
  mlp_inner(mlp_context(context, unit, weights), std::move(x), state.mlp);
  Tensor y = mlp_output(mlp_context(context, unit, weights), state.mlp);
  if (context.recompute == Recompute::unit) state.mlp.hidden = {};
  return y;
}

void mlp_backward(const StageContext& context, const UnitLease& unit, TensorView dx, StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, kParametersPerHalf);
  const HalfContext half = mlp_context(context, unit, weights);
  if (context.recompute == Recompute::unit) mlp_inner(half, std::move(state.mlp.x), state.mlp);
  const HalfParameters gradients{unit.gradient(0), unit.gradient(1), unit.gradient(2),
                                 unit.gradient(3), unit.gradient(4), unit.gradient(5)};
  bench::mlp_backward(half, gradients, state.mlp, dx);
}

kernels::CrossEntropy cross_entropy(const StageContext& context, TensorView output, const StageState& state,
                                    const Tensor& workspace) {
  return {state.hidden.view, output, context.batch->targets, state.lse.view, workspace.view, context.batch->loss_scale};
}

Tensor loss_workspace(const StageContext& context, const UnitLease& unit) {
  return context.tensors->workspace("cross_entropy", unit.unit(),
                                    kernels::cross_entropy_workspace_bytes(context.rows(), unit.parameter(2).shape[0]));
}

void head_forward(const StageContext& context, const UnitLease& unit, Tensor x, TensorView loss, StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, 3);
  state.hidden = residual(context, unit, "head.hidden");
  state.mean = context.tensors->activation("norm.mean", unit.unit(), context.rows());
  state.rstd = context.tensors->activation("norm.rstd", unit.unit(), context.rows());
  state.lse = context.tensors->activation("head.lse", unit.unit(), context.rows());
  kernels::layer_norm_forward(x.view, weights[0], weights[1], state.hidden.view, state.mean.view, state.rstd.view,
                              launch_of(context, unit));
  const Tensor workspace = loss_workspace(context, unit);
  kernels::cross_entropy_forward(cross_entropy(context, weights[2], state, workspace), loss, launch_of(context, unit));
  state.x = std::move(x);
}

Tensor head_backward(const StageContext& context, const UnitLease& unit, const StageState& state) {
  const WideParameters weights(*context.tensors, unit, 0, 3);
  Tensor dx = residual(context, unit, "dresidual");
  const Tensor workspace = loss_workspace(context, unit);
  kernels::cross_entropy_backward(cross_entropy(context, weights[2], state, workspace), dx.view, unit.gradient(2),
                                  launch_of(context, unit));
  kernels::layer_norm_backward({state.x.view, weights[0], state.mean.view, state.rstd.view}, dx.view, dx.view,
                               kernels::Write::overwrite, unit.gradient(0), unit.gradient(1), launch_of(context, unit));
  return dx;
}

}  // namespace

Tensor stage_forward(const Stage& stage, const StageContext& context, const UnitLease& unit, Tensor x, TensorView loss,
                     StageState& state) {
  switch (stage.kind) {
    case Stage::Kind::embedding: return embedding_forward(context, unit);
    case Stage::Kind::gain: return gain_forward(context, unit, std::move(x), state);
    case Stage::Kind::projection: return projection_forward(context, unit, x);
    case Stage::Kind::mlp: return mlp_forward(context, unit, std::move(x), state);
    case Stage::Kind::head: head_forward(context, unit, std::move(x), loss, state); break;
  }
  return {};
}

Tensor stage_backward(const Stage& stage, const StageContext& context, const UnitLease& unit, Tensor dy,
                      StageState& state) {
  switch (stage.kind) {
    case Stage::Kind::embedding: embedding_backward(context, unit, dy); return {};
    case Stage::Kind::gain: return gain_backward(context, unit, dy, state);
    case Stage::Kind::projection: return projection_backward(context, unit, dy);
    case Stage::Kind::mlp: mlp_backward(context, unit, dy.view, state); return dy;
    case Stage::Kind::head: break;
  }
  return head_backward(context, unit, state);
}

}  // namespace headroom::bench
