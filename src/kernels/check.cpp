#include "kernels/check.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace headroom::kernels {

namespace {

using Shape = std::array<std::int64_t, 4>;

std::string spell(const Shape& shape) {
  return fmt::format("[{}, {}, {}, {}]", shape[0], shape[1], shape[2], shape[3]);
}

void check_dtype_and_memory(const char* kernel, const char* name, const TensorView& tensor, DType dtype) {
  if (tensor.dtype != dtype) {
    throw std::logic_error(
        fmt::format("{}: {} is {}, expected {}", kernel, name, name_of(tensor.dtype), name_of(dtype)));
  }
  if (tensor.data == nullptr && tensor.numel() != 0) {
    throw std::logic_error(fmt::format("{}: {} of shape {} has no memory", kernel, name, spell(tensor.shape)));
  }
}

}  // namespace

void check_tensor(const char* kernel, const char* name, const TensorView& tensor, DType dtype,
                  std::initializer_list<std::int64_t> shape) {
  Shape expected{1, 1, 1, 1};
  std::size_t axis = 0;
  for (const std::int64_t extent : shape) expected.at(axis++) = extent;
  if (tensor.shape != expected) {
    throw std::logic_error(
        fmt::format("{}: {} has shape {}, expected {}", kernel, name, spell(tensor.shape), spell(expected)));
  }
  check_dtype_and_memory(kernel, name, tensor, dtype);
}

void check_count(const char* kernel, const char* name, const TensorView& tensor, DType dtype, std::int64_t count) {
  if (tensor.numel() != count || count < 0) {
    throw std::logic_error(fmt::format("{}: {} of shape {} has {} elements, expected {}", kernel, name,
                                       spell(tensor.shape), tensor.numel(), count));
  }
  check_dtype_and_memory(kernel, name, tensor, dtype);
}

void check_f32_or_bf16(const char* kernel, const char* name, const TensorView& tensor, std::int64_t count) {
  if (tensor.dtype != DType::f32 && tensor.dtype != DType::bf16) {
    throw std::logic_error(fmt::format("{}: {} is {}, expected f32 or bf16", kernel, name, name_of(tensor.dtype)));
  }
  check_count(kernel, name, tensor, tensor.dtype, count);
}

void check_workspace(const char* kernel, const TensorView& workspace, std::size_t needed_bytes) {
  if (workspace.data == nullptr || workspace.bytes() < needed_bytes) {
    throw std::logic_error(fmt::format("{}: the workspace has {} bytes, expected at least {}", kernel,
                                       workspace.data == nullptr ? 0 : workspace.bytes(), needed_bytes));
  }
}

void check_extent(const char* kernel, const char* name, std::int64_t value) {
  if (value < 1 || value > std::numeric_limits<std::int32_t>::max()) {
    throw std::logic_error(fmt::format("{}: {} is {}, expected 1 to 2^31 - 1", kernel, name, value));
  }
}

void check_that(bool holds, const char* kernel, const char* expectation) {
  if (!holds) throw std::logic_error(fmt::format("{}: {}", kernel, expectation));
}

void check_tokens(const char* kernel, const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      throw InvalidInput(
          fmt::format("{}: token {} at row {} is outside the vocabulary of {}", kernel, tokens[i], i, vocabulary));
    }
  }
}

void enqueue(const Launch& launch, const char* name, const Cost& cost, std::function<void()> host) {
  Operation operation;
  operation.name = name;
  operation.unit = launch.unit;
  operation.flops = cost.flops;
  operation.bytes = cost.bytes;
  operation.host = std::move(host);
  launch.stream.enqueue(std::move(operation));
}

}  // namespace headroom::kernels
