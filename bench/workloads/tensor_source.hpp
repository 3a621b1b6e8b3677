#pragma once

#include <headroom/allocator.hpp>

#include <cstddef>

namespace headroom::bench {

/// A buffer and the view of all of it. Freed in stream order when it goes, so it may go as soon as its last kernel is
/// enqueued.
struct Tensor {
  Buffer buffer;
  TensorView view;
};

/// Where a workload's activations come from: an allocator, and the stream that computes with them.
class TensorSource {
 public:
  TensorSource(CachingAllocator& memory, StreamRef compute) noexcept : memory_(&memory), compute_(compute) {}

  /// Throws: OutOfMemory.
  [[nodiscard]] Tensor make(const char* name, Category category, int unit, std::array<std::int64_t, 4> shape,
                            DType dtype = DType::f32) const;
  [[nodiscard]] Tensor activation(const char* name, int unit, std::int64_t rows, std::int64_t columns = 1) const {
    return make(name, Category::activation, unit, {rows, columns, 1, 1});
  }
  [[nodiscard]] Tensor workspace(const char* name, int unit, std::size_t bytes) const {
    return make(name, Category::workspace, unit, {static_cast<std::int64_t>(bytes), 1, 1, 1}, DType::u8);
  }
  /// What is computed next, for the attribution of the peak. Both texts have static lifetime.
  void mark(int unit, const char* phase, const char* operation) const { memory_->mark_unit(unit, phase, operation); }

  [[nodiscard]] StreamRef compute() const noexcept { return compute_; }

 private:
  CachingAllocator* memory_;
  StreamRef compute_;
};

}  // namespace headroom::bench
