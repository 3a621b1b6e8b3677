#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headroom {

/// CRC-32C (Castagnoli, RFC 3720) of `bytes` appended to data whose checksum is `crc` (0: nothing yet). Pure;
/// thread-safe. Uses the processor's instruction where it has one, else a table; the same value.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

}  // namespace headroom
