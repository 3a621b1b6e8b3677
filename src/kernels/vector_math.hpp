#pragma once

#include <bit>
#include <cstdint>

/// Functions of one float without branches or calls, so that loops over them become vector code.
namespace headroom::kernels::host {

/// e^x within 2 ulp for |x| < 87; 0 below -87.3, e^88 above 88, NaN for NaN. Range reduction by ln 2 in two parts and
/// the degree-7 polynomial of Cephes expf (Moshier).
inline float exp(float x) noexcept {
  constexpr float kLowest = -87.3F, kHighest = 88.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  float y = x < kLowest ? kLowest : x;   // these comparisons are false for NaN, which therefore passes
  y = y > kHighest ? kHighest : y;
  const float shifted = y * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (y - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U);
  return x < kLowest ? 0.0F : p * power;
}

}  // namespace headroom::kernels::host
