#include "kernels/check.hpp"
#include "kernels/host.hpp"

namespace headroom::kernels {

namespace {

StepScalars* check_scalars(const char* kernel, const TensorView& scalars) {
  static_assert(sizeof(StepScalars) == 4 * sizeof(double));
  check_tensor(kernel, "scalars", scalars, DType::f64, {4});
  return scalars.as<StepScalars>();
}

void check_options(const AdamWHyperparameters& options) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  check_that(options.learning_rate >= 0, "adamw", "the learning rate must not be negative");
  check_that(is_beta(options.beta1) && is_beta(options.beta2), "adamw", "beta1 and beta2 must be in [0, 1)");
  check_that(options.eps > 0, "adamw", "eps must be positive");
  check_that(options.weight_decay >= 0, "adamw", "the weight decay must not be negative");
  check_that(options.clip >= 0, "adamw", "clip must not be negative");
}

}  // namespace

void sum_squares(TensorView tensor, TensorView sum, Launch launch) {
  check_count("sum_squares", "tensor", tensor, DType::f32, tensor.numel());
  check_tensor("sum_squares", "sum", sum, DType::f64, {1});
  const auto count = static_cast<double>(tensor.numel());
  enqueue(launch, "sum_squares", {2 * count, 4 * count},
          [data = tensor.as<float>(), elements = tensor.numel(), sum = sum.as<double>()] {
            *sum += host::sum_squares(data, elements);
          });
}

void advance_step(TensorView scalars, Launch launch) {
  auto* on_device = check_scalars("advance_step", scalars);
  enqueue(launch, "advance_step", {}, [on_device] { host::advance_step(*on_device); });
}

void adamw(TensorView parameter, TensorView gradient, TensorView exp_avg, TensorView exp_avg_sq, TensorView scalars,
           const AdamWHyperparameters& options, bool decay, Launch launch) {
  const std::int64_t count = parameter.numel();
  check_count("adamw", "parameter", parameter, DType::f32, count);
  check_count("adamw", "gradient", gradient, DType::f32, count);
  check_count("adamw", "exp_avg", exp_avg, DType::f32, count);
  check_count("adamw", "exp_avg_sq", exp_avg_sq, DType::f32, count);
  const auto* on_device = check_scalars("adamw", scalars);
  check_options(options);
  AdamWHyperparameters used = options;
  if (!decay) used.weight_decay = 0;
  const host::AdamWRange range{parameter.as<float>(), gradient.as<float>(), exp_avg.as<float>(), exp_avg_sq.as<float>(),
                               count};
  enqueue(launch, "adamw", {15.0 * static_cast<double>(count), 28.0 * static_cast<double>(count)},
          [range, on_device, used] { host::adamw(range, *on_device, used); });
}

}  // namespace headroom::kernels
