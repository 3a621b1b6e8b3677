#include "collectives/reference.hpp"

#include "runtime/core/bf16.hpp"

namespace headroom::testing {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

std::uint64_t bits(int rank, std::size_t i, std::uint64_t salt) {
  return mix((salt << 44U) + (static_cast<std::uint64_t>(rank) << 36U) + i);
}

}  // namespace

double value(int rank, std::size_t i, std::uint64_t salt) {
  const std::uint64_t random = bits(rank, i, salt);
  const double fraction = static_cast<double>(random >> 12U) * 0x1p-52 - 0.5;
  return fraction * static_cast<double>(1U << (random % 12));
}

std::uint8_t byte_value(int rank, std::size_t i, std::uint64_t salt) {
  return static_cast<std::uint8_t>(bits(rank, i, salt));
}

TensorView view_of(std::vector<float>& data) { return view(data.data(), data.size(), DType::f32); }
TensorView view_of(std::vector<double>& data) { return view(data.data(), data.size(), DType::f64); }
TensorView view_of(std::vector<std::uint16_t>& data) { return view(data.data(), data.size(), DType::bf16); }

template <>
std::vector<std::uint16_t> values(int rank, std::size_t numel, std::uint64_t salt) {
  std::vector<std::uint16_t> all(numel);
  for (std::size_t i = 0; i < numel; ++i) all[i] = detail::to_bf16(static_cast<float>(value(rank, i, salt)));
  return all;
}

template <>
std::vector<std::uint16_t> summed(const std::vector<int>& ranks, std::size_t numel, std::uint64_t salt) {
  std::vector<std::uint16_t> sums(numel);
  for (std::size_t i = 0; i < numel; ++i) {
    float sum = -0.0F;  // The one number that adding to changes nothing.
    for (const int rank : ranks) {
      sum += detail::from_bf16(detail::to_bf16(static_cast<float>(value(rank, i, salt))));
    }
    sums[i] = detail::to_bf16(sum);
  }
  return sums;
}

std::vector<int> ranks_from(int first, int count, int step) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return ranks;
}

}  // namespace headroom::testing
