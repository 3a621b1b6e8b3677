#include <headroom/tensor.hpp>

namespace headroom {

const char* name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "unknown";
}

}  // namespace headroom
