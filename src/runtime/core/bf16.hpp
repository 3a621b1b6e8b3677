#pragma once

#include <bit>
#include <cstdint>

/// bfloat16 as its bits: the upper half of an f32. Without branches, so that loops become vector code.
namespace headroom::detail {

[[nodiscard]] inline float from_bf16(std::uint16_t half) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
}

/// To nearest, ties to even; beyond the largest finite one infinity; a NaN stays a (quiet) NaN.
[[nodiscard]] inline std::uint16_t to_bf16(float value) noexcept {
  constexpr std::uint32_t kInfinity = 0x7F800000U, kQuiet = 0x00400000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > kInfinity;
  return static_cast<std::uint16_t>((is_nan ? bits | kQuiet : rounded) >> 16U);
}

}  // namespace headroom::detail
