#include "workloads/wide_parameters.hpp"

#include <headroom/kernels.hpp>

namespace headroom::bench {

WideParameters::WideParameters(const TensorSource& tensors, const UnitLease& lease, int first, int count) {
  constexpr std::size_t kAlignmentBytes = 64;
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (int index = first; index < first + count; ++index) {
    const TensorView& view = views_.emplace_back(lease.parameter(index));
    offsets.push_back(bytes);
    if (view.dtype == DType::f32) continue;
    const std::size_t wide_bytes = static_cast<std::size_t>(view.numel()) * sizeof(float);
    bytes += (wide_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }
  if (bytes == 0) return;
  copies_ = tensors.workspace("parameters.f32", lease.unit(), bytes);
  for (std::size_t index = 0; index < views_.size(); ++index) {
    TensorView& view = views_[index];
    if (view.dtype == DType::f32) continue;
    const TensorView copy{copies_.buffer.data() + offsets[index], DType::f32, view.shape};
    kernels::cast(view, copy, {tensors.compute(), lease.unit()});
    view = copy;
  }
}

}  // namespace headroom::bench
