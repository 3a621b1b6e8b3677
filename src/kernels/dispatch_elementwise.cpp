#include "kernels/check.hpp"
#include "kernels/host.hpp"

#include <cstring>
#include <functional>

namespace headroom::kernels {

namespace {

template <class T>
void enqueue_fill(const TensorView& tensor, double value, const Launch& launch) {
  enqueue(launch, "fill", {0, static_cast<double>(tensor.bytes())},
          [data = tensor.as<T>(), count = tensor.numel(), typed = static_cast<T>(value)] {
            host::fill(data, count, typed);
          });
}

template <class T>
void enqueue_accumulate(const TensorView& source, const TensorView& destination, const Launch& launch) {
  const auto count = source.numel();
  enqueue(launch, "accumulate",
          {static_cast<double>(count), static_cast<double>(source.bytes() + 2 * destination.bytes())},
          [from = source.as<T>(), to = destination.as<float>(), count] { host::accumulate(from, to, count); });
}

bool apart(const TensorView& a, const TensorView& b) {
  const auto* const first = a.as<std::byte>();
  const auto* const second = b.as<std::byte>();
  const std::less<> before;
  return !before(first, second + b.bytes()) || !before(second, first + a.bytes());
}

void run_cast(const TensorView& source, const TensorView& destination) {
  const auto* const from = source.as<const std::byte>();
  auto* const to = destination.as<std::byte>();
  if (source.dtype != destination.dtype) {
    return source.dtype == DType::f32 ? host::narrow(from, to, source.numel()) : host::widen(from, to, source.numel());
  }
  if (from != to && source.bytes() > 0) std::memcpy(to, from, source.bytes());
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
  check_f32_or_bf16("accumulate", "source", source, source.numel());
  check_count("accumulate", "destination", destination, DType::f32, source.numel());
  if (source.dtype == DType::bf16) return enqueue_accumulate<std::uint16_t>(source, destination, launch);
  enqueue_accumulate<float>(source, destination, launch);
}

void cast(TensorView source, TensorView destination, Launch launch) {
  if (source.dtype == destination.dtype) {
    check_count("cast", "source", source, source.dtype, source.numel());
  } else {
    check_f32_or_bf16("cast", "source", source, source.numel());
    check_f32_or_bf16("cast", "destination", destination, source.numel());
  }
  check_count("cast", "destination", destination, destination.dtype, source.numel());
  check_that(destination.data == source.data || apart(source, destination), "cast",
             "source and destination overlap, but do not begin at the same address");
  enqueue(launch, "cast", {0, static_cast<double>(source.bytes() + destination.bytes())},
          [source, destination] { run_cast(source, destination); });
}

void fill_normal(TensorView tensor, const Normal& normal, Launch launch) {
  check_count("fill_normal", "tensor", tensor, DType::f32, tensor.numel());
  check_that(normal.first_index >= 0, "fill_normal", "first_index must not be negative");
  enqueue(launch, "fill_normal", {0, static_cast<double>(tensor.bytes())},
          [data = tensor.as<float>(), count = tensor.numel(), normal] { host::fill_normal(data, count, normal); });
}

}  // namespace headroom::kernels
