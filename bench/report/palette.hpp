#pragma once

#include <headroom/events.hpp>
#include <headroom/trace.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headroom::bench {

/// Colours are 0xRRGGBB, and can be told apart also by people who do not see red and green alike.
struct Band {
  Tag tag = Tag::other;
  std::uint32_t color = 0;
};
/// What a memory timeline stacks, from the bottom: residents in greys, full parameters in blues, full gradients in
/// oranges, what a step computes in greens.
[[nodiscard]] std::span<const Band> bands() noexcept;

struct OperationKind {
  const char* name = "";
  std::uint32_t color = 0;
};
[[nodiscard]] std::span<const OperationKind> operation_kinds() noexcept;
/// Which of them an operation is, by its name.
[[nodiscard]] std::size_t kind_of(std::string_view operation) noexcept;

/// By HostCause.
inline constexpr std::array<OperationKind, 4> kHostCauses{
    {{"throttle", 0xc2410c}, {"allocator", 0xcc79a7}, {"launch", 0xb9c2cb}, {"vote", 0x2e4a7d}}};
inline constexpr std::uint32_t kPendingColor = 0x7b8794, kWaitColor = 0xb04a2f;

}  // namespace headroom::bench
