#include "kernels/host.hpp"
#include "kernels/philox.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom::kernels::host {

namespace {

/// In (0, 1): 32 bits are centred, so that the logarithm is finite.
double uniform(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// The four standard normal numbers of elements 4 * block .. 4 * block + 3.
std::array<double, 4> normals(std::uint64_t block, const Normal& normal) {
  const auto low = [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits); };
  const auto high = [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32U); };
  const auto bits = philox4x32({low(block), high(block), low(normal.stream), high(normal.stream)},
                               {low(normal.key), high(normal.key)});
  std::array<double, 4> values{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(bits[pair])));
    const double angle = 2.0 * std::numbers::pi * uniform(bits[pair + 1]);
    values[pair] = radius * std::cos(angle);
    values[pair + 1] = radius * std::sin(angle);
  }
  return values;
}

}  // namespace

void fill_normal(float* data, std::int64_t count, const Normal& normal) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t index = normal.first_index + done;
    const std::int64_t skip = index % 4;
    const std::int64_t take = std::min(4 - skip, count - done);
    const auto values = normals(static_cast<std::uint64_t>(index / 4), normal);
    for (std::int64_t i = 0; i < take; ++i) {
      data[done + i] = static_cast<float>(normal.mean + normal.stddev * values[static_cast<std::size_t>(skip + i)]);
    }
    done += take;
  }
}

}  // namespace headroom::kernels::host
