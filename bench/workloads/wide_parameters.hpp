#pragma once

#include <headroom/step.hpp>

#include "workloads/tensor_source.hpp"

#include <vector>

namespace headroom::bench {

/// Some parameters of a visit in f32, which is what kernels take: the lease's own views, or, where it was gathered in
/// bf16, copies in a workspace, made on compute.
class WideParameters {
 public:
  /// Parameters [first, first + count) of the lease. Throws: OutOfMemory.
  WideParameters(const TensorSource& tensors, const UnitLease& lease, int first, int count);

  /// By their place among these.
  [[nodiscard]] const TensorView& operator[](int index) const { return views_[static_cast<std::size_t>(index)]; }

 private:
  std::vector<TensorView> views_;
  Tensor copies_;
};

}  // namespace headroom::bench
