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

/// T here and below: float, double, or std::uint16_t, the bits of a bf16.
template <class T>
[[nodiscard]] std::vector<T> values(int rank, std::size_t numel, std::uint64_t salt) {
  std::vector<T> all(numel);
  for (std::size_t i = 0; i < numel; ++i) all[i] = static_cast<T>(value(rank, i, salt));
  return all;
}
template <>
[[nodiscard]] std::vector<std::uint16_t> values(int rank, std::size_t numel, std::uint64_t salt);

/// The sum over `ranks`, in this order: in T, or in f32 and then rounded.
template <class T>
[[nodiscard]] std::vector<T> summed(const std::vector<int>& ranks, std::size_t numel, std::uint64_t salt) {
  std::vector<T> sum = values<T>(ranks.front(), numel, salt);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    for (std::size_t i = 0; i < numel; ++i) sum[i] += static_cast<T>(value(ranks[rank], i, salt));
  }
  return sum;
}
template <>
[[nodiscard]] std::vector<std::uint16_t> summed(const std::vector<int>& ranks, std::size_t numel, std::uint64_t salt);

/// `count` ranks from `first` on, `step` apart.
[[nodiscard]] std::vector<int> ranks_from(int first, int count, int step = 1);

/// Over all ranks.
template <class T>
[[nodiscard]] std::vector<T> summed(int world, std::size_t numel, std::uint64_t salt) {
  return summed<T>(ranks_from(0, world), numel, salt);
}

template <class T>
[[nodiscard]] TensorView view(T* data, std::size_t numel, DType dtype) {
  return {data, dtype, {static_cast<std::int64_t>(numel), 1, 1, 1}};
}
[[nodiscard]] TensorView view_of(std::vector<float>& data);
[[nodiscard]] TensorView view_of(std::vector<double>& data);
[[nodiscard]] TensorView view_of(std::vector<std::uint16_t>& data);
/// Elements [begin, begin + numel).
template <class T>
[[nodiscard]] TensorView slice_of(std::vector<T>& data, std::size_t begin, std::size_t numel) {
  return view(data.data() + begin, numel, view_of(data).dtype);
}
template <class T>
[[nodiscard]] std::vector<T> part_of(const std::vector<T>& data, std::size_t begin, std::size_t numel) {
  const auto first = data.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(numel)};
}

}  // namespace headroom::testing
