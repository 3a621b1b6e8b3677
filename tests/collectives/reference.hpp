#pragma once

#include <headroom/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom::testing {

/// What `rank` contributes as element `i` of operation `salt`: signs and magnitudes mixed, so that sums depend on
/// order.
[[nodiscard]] double value(int rank, std::size_t i, std::uint64_t salt);
[[nodiscard]] std::uint8_t byte_value(int rank, std::size_t i, std::uint64_t salt);

template <class T>
[[nodiscard]] std::vector<T> values(int rank, std::size_t numel, std::uint64_t salt) {
  std::vector<T> all(numel);
  for (std::size_t i = 0; i < numel; ++i) all[i] = static_cast<T>(value(rank, i, salt));
  return all;
}

/// The sum over `world` ranks in rank order, in T.
template <class T>
[[nodiscard]] std::vector<T> summed(int world, std::size_t numel, std::uint64_t salt) {
  std::vector<T> sum = values<T>(0, numel, salt);
  for (int rank = 1; rank < world; ++rank) {
    for (std::size_t i = 0; i < numel; ++i) sum[i] += static_cast<T>(value(rank, i, salt));
  }
  return sum;
}

template <class T>
[[nodiscard]] TensorView view(T* data, std::size_t numel, DType dtype) {
  return {data, dtype, {static_cast<std::int64_t>(numel), 1, 1, 1}};
}
[[nodiscard]] TensorView view_of(std::vector<float>& data);
[[nodiscard]] TensorView view_of(std::vector<double>& data);
/// Elements [begin, begin + numel).
[[nodiscard]] TensorView slice_of(std::vector<float>& data, std::size_t begin, std::size_t numel);

}  // namespace headroom::testing
