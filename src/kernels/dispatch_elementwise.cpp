#include "kernels/check.hpp"
#include "kernels/host.hpp"

#include <cstring>

namespace headroom::kernels {

namespace {

template <class T>
void enqueue_fill(const TensorView& tensor, double value, const Launch& launch) {
  enqueue(launch, "fill", {0, static_cast<double>(tensor.bytes())},
          [data = tensor.as<T>(), count = tensor.numel(), typed = static_cast<T>(value)] {
            host::fill(data, count, typed);
          });
}

}  // namespace

void fill(TensorView tensor, double value, Launch launch) {
  check_count("fill", "tensor", tensor, tensor.dtype, tensor.numel());
  switch (tensor.dtype) {
    case DType::f32: return enqueue_fill<float>(tensor, value, launch);
    case DType::f64: return enqueue_fill<double>(tensor, value, launch);
    case DType::i32: return enqueue_fill<std::int32_t>(tensor, value, launch);
    case DType::bf16:
    case DType::u8: break;
  }
  check_that(false, "fill", "the tensor must be f32, f64 or i32");
}

void copy(TensorView source, TensorView destination, Launch launch) {
  check_count("copy", "source", source, source.dtype, source.numel());
  check_count("copy", "destination", destination, source.dtype, source.numel());
  enqueue(launch, "copy", {0, 2.0 * static_cast<double>(source.bytes())},
          [from = source.data, to = destination.data, bytes = source.bytes()] {
            if (bytes > 0) std::memcpy(to, from, bytes);
          });
}

void accumulate(TensorView source, TensorView destination, Launch launch) {
  check_count("accumulate", "source", source, DType::f32, source.numel());
  check_count("accumulate", "destination", destination, DType::f32, source.numel());
  const auto count = source.numel();
  enqueue(launch, "accumulate", {static_cast<double>(count), 12.0 * static_cast<double>(count)},
          [from = source.as<float>(), to = destination.as<float>(), count] { host::accumulate(from, to, count); });
}

void fill_normal(TensorView tensor, const Normal& normal, Launch launch) {
  check_count("fill_normal", "tensor", tensor, DType::f32, tensor.numel());
  check_that(normal.first_index >= 0, "fill_normal", "first_index must not be negative");
  enqueue(launch, "fill_normal", {0, static_cast<double>(tensor.bytes())},
          [data = tensor.as<float>(), count = tensor.numel(), normal] { host::fill_normal(data, count, normal); });
}

}  // namespace headroom::kernels
