#include "workloads/tensor_source.hpp"

namespace headroom::bench {

Tensor TensorSource::make(const char* name, Category category, int unit, std::array<std::int64_t, 4> shape,
                          DType dtype) const {
  const TensorView extent{nullptr, dtype, shape};
  Tensor tensor;
  tensor.buffer =
      memory_->allocate({.bytes = extent.bytes(), .category = category, .name = name, .unit = unit}, compute_);
  tensor.view = tensor.buffer.tensor(dtype, shape);
  return tensor;
}

}  // namespace headroom::bench
