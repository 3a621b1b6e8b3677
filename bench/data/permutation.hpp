#pragma once

#include <cstdint>

namespace headroom::bench {

/// A bijection of [0, count) drawn by `key`: a Feistel network over the next power of four, walked until it lands
/// inside (Black and Rogaway, 2002). Pure; no memory.
[[nodiscard]] std::uint64_t permute(std::uint64_t index, std::uint64_t count, std::uint64_t key) noexcept;

}  // namespace headroom::bench
