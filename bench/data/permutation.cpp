#include "data/permutation.hpp"

#include <array>
#include <bit>

namespace headroom::bench {
namespace {

// SplitMix64's finalizer (Steele, Lea and Flood, 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t permute(std::uint64_t index, std::uint64_t count, std::uint64_t key) noexcept {
  constexpr int kRounds = 6;
  const int bits = count > 1 ? static_cast<int>(std::bit_width(count - 1)) : 1;
  const int half = (bits + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mix(right ^ mix(key + static_cast<std::uint64_t>(round))) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

}  // namespace headroom::bench
