#include "kernels/host.hpp"
#include "runtime/core/bf16.hpp"

#include <algorithm>

namespace headroom::kernels::host {

template <class T>
void fill(T* data, std::int64_t count, T value) {
  std::fill_n(data, count, value);
}
template void fill<float>(float*, std::int64_t, float);
template void fill<double>(double*, std::int64_t, double);
template void fill<std::int32_t>(std::int32_t*, std::int64_t, std::int32_t);

void accumulate(const float* source, float* destination, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) destination[i] += source[i];
}

void accumulate(const std::uint16_t* source, float* destination, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) destination[i] += detail::from_bf16(source[i]);
}

}  // namespace headroom::kernels::host
