#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

enum class DType : std::uint8_t { f32, bf16, f64, i32, u8 };

[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::bf16: return 2;
    case DType::u8: return 1;
    case DType::f32:
    case DType::i32: break;
  }
  return 4;
}

[[nodiscard]] const char* name_of(DType dtype) noexcept;

/// A contiguous, row-major, non-owning view; rank 0..4, unused trailing extents are 1.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};

  [[nodiscard]] constexpr std::int64_t numel() const noexcept { return shape[0] * shape[1] * shape[2] * shape[3]; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(numel()) * size_of(dtype);
  }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data);
  }
};

}  // namespace headroom
