#pragma once

#include <headroom/device.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

/// Address ranges and pages of this machine; see Backend for what each function promises.
namespace headroom::detail::host_memory {

inline constexpr std::size_t kPageBytes = std::size_t{2} << 20U;  ///< A huge page.

[[nodiscard]] std::byte* reserve(std::size_t bytes);
void unreserve(std::byte* base, std::size_t bytes) noexcept;
[[nodiscard]] bool commit(std::byte* at, std::size_t bytes) noexcept;
/// The same, but no memory is taken until it is touched.
[[nodiscard]] bool commit_untouched(std::byte* at, std::size_t bytes) noexcept;
void decommit(std::byte* at, std::size_t bytes) noexcept;

/// What this process may still use: the machine's available memory within the limits of its control groups.
[[nodiscard]] MemoryInfo info();
/// `machine`, narrowed by the limits of the group that `membership` (text of /proc/self/cgroup) names under `root`,
/// and of the groups above it. Versions 1 and 2; file cache that can be dropped counts as free.
[[nodiscard]] MemoryInfo within_groups(MemoryInfo machine, const std::string& membership,
                                       const std::filesystem::path& root);

}  // namespace headroom::detail::host_memory
