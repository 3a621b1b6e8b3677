#include "kernels/check.hpp"
#include "kernels/host.hpp"

namespace headroom::kernels {

namespace {

host::LinearCrossEntropy head_of(const char* kernel, const CrossEntropy& inputs) {
  const std::int64_t rows = inputs.hidden.shape[0], width = inputs.hidden.shape[1];
  const std::int64_t vocabulary = inputs.wte.shape[0];
  check_extent(kernel, "rows of hidden", rows);
  check_extent(kernel, "width", width);
  check_extent(kernel, "vocabulary", vocabulary);
  check_tensor(kernel, "hidden", inputs.hidden, DType::f32, {rows, width});
  check_tensor(kernel, "wte", inputs.wte, DType::f32, {vocabulary, width});
  check_tensor(kernel, "targets", inputs.targets, DType::i32, {rows});
  check_tensor(kernel, "lse", inputs.lse, DType::f32, {rows});
  check_workspace(kernel, inputs.workspace, cross_entropy_workspace_bytes(rows, vocabulary));
  return {rows,
          width,
          vocabulary,
          host::cross_entropy_chunk(rows, vocabulary),
          inputs.scale,
          inputs.hidden.as<float>(),
          inputs.wte.as<float>(),
          inputs.targets.as<std::int32_t>(),
          inputs.lse.as<float>(),
          inputs.workspace.as<float>()};
}

Cost head_cost(const host::LinearCrossEntropy& head, double products) {
  const auto rows = static_cast<double>(head.rows), width = static_cast<double>(head.width);
  const auto vocabulary = static_cast<double>(head.vocabulary);
  return {2 * products * rows * width * vocabulary, 4 * products * (rows * width + vocabulary * width)};
}

}  // namespace

std::size_t cross_entropy_workspace_bytes(std::int64_t rows, std::int64_t vocabulary) {
  check_extent("cross_entropy", "rows", rows);
  check_extent("cross_entropy", "vocabulary", vocabulary);
  const std::int64_t chunk = host::cross_entropy_chunk(rows, vocabulary);
  return static_cast<std::size_t>(host::cross_entropy_workspace_numel(rows, chunk)) * sizeof(float);
}

void cross_entropy_forward(const CrossEntropy& inputs, TensorView loss, Launch launch) {
  const auto head = head_of("cross_entropy_forward", inputs);
  check_tensor("cross_entropy_forward", "loss", loss, DType::f64, {1});
  enqueue(launch, "cross_entropy_forward", head_cost(head, 1),
          [head, loss = loss.as<double>()] { host::cross_entropy_forward(head, loss); });
}

void cross_entropy_backward(const CrossEntropy& inputs, TensorView dhidden, TensorView dwte, Launch launch) {
  const auto head = head_of("cross_entropy_backward", inputs);
  check_tensor("cross_entropy_backward", "dhidden", dhidden, DType::f32, {head.rows, head.width});
  check_tensor("cross_entropy_backward", "dwte", dwte, DType::f32, {head.vocabulary, head.width});
  enqueue(launch, "cross_entropy_backward", head_cost(head, 3),
          [head, dhidden = dhidden.as<float>(), dwte = dwte.as<float>()] {
            host::cross_entropy_backward(head, dhidden, dwte);
          });
}

}  // namespace headroom::kernels
