#pragma once

#include <headroom/kernels.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>

/// What every dispatch function does before its body: refuse what does not fit, then enqueue one operation.
namespace headroom::kernels {

/// Throws std::logic_error unless the tensor has this dtype and shape (trailing extents 1) and, unless empty, memory.
void check_tensor(const char* kernel, const char* name, const TensorView& tensor, DType dtype,
                  std::initializer_list<std::int64_t> shape);
/// Any shape, `count` elements, 0 included.
void check_count(const char* kernel, const char* name, const TensorView& tensor, DType dtype, std::int64_t count);
/// f32 or bf16, any shape, `count` elements, 0 included.
void check_f32_or_bf16(const char* kernel, const char* name, const TensorView& tensor, std::int64_t count);
void check_workspace(const char* kernel, const TensorView& workspace, std::size_t needed_bytes);
/// Throws std::logic_error unless 1 <= value <= 2^31 - 1 (what BLAS can take).
void check_extent(const char* kernel, const char* name, std::int64_t value);
/// Throws std::logic_error with this text unless `holds`.
void check_that(bool holds, const char* kernel, const char* expectation);

/// In a body: throws InvalidInput at the first token outside [0, vocabulary).
void check_tokens(const char* kernel, const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary);

struct Cost {
  double flops = 0, bytes = 0;
};
void enqueue(const Launch& launch, const char* name, const Cost& cost, std::function<void()> host);

}  // namespace headroom::kernels
