#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headroom::detail {

/// The checksum of each byte value, for 0x1EDC6F41 with its bits reversed.
constexpr std::array<std::uint32_t, 256> make_crc32c_table() noexcept {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[byte] = crc;
  }
  return table;
}

inline constexpr auto kCrc32cTable = make_crc32c_table();

/// A byte at a time, without the usual inversions; what processors without the instruction use.
inline std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t state) noexcept {
  for (const std::byte byte : bytes) {
    state = (state >> 8U) ^ kCrc32cTable[(state ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  }
  return state;
}

}  // namespace headroom::detail
