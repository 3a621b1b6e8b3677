#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "runtime/core/host_memory.hpp"

namespace headroom::detail::host_memory {
namespace {

namespace fs = std::filesystem;

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* droppable;  // key in memory.stat
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

std::optional<std::size_t> read_size(const fs::path& path) {
  std::ifstream file(path);
  std::size_t value = 0;  // "max" is no number: no limit
  if (file >> value) return value;
  return std::nullopt;
}

/// The number after `key` in a file of "key number" lines.
std::optional<std::size_t> read_field(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    std::size_t value = 0;
    if (fields >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

MemoryInfo within_group(MemoryInfo outer, const fs::path& folder, const GroupFiles& files) {
  const std::optional<std::size_t> limit = read_size(folder / files.limit);
  const std::optional<std::size_t> usage = read_size(folder / files.usage);
  if (!limit || !usage) return outer;
  const std::size_t droppable = read_field(folder / "memory.stat", files.droppable).value_or(0);
  const std::size_t used = *usage - std::min(*usage, droppable);
  const std::size_t free = *limit - std::min(*limit, used);
  return MemoryInfo{std::min(outer.free_bytes, free), std::min(outer.total_bytes, *limit)};
}

MemoryInfo within_ancestors(MemoryInfo outer, const fs::path& root, fs::path group, const GroupFiles& files) {
  for (;;) {
    outer = within_group(outer, root / group, files);
    if (group.empty()) return outer;
    group = group.parent_path();
  }
}

}  // namespace

MemoryInfo within_groups(MemoryInfo machine, const std::string& membership, const fs::path& root) {
  std::istringstream lines(membership);
  std::string line;
  while (std::getline(lines, line)) {  // hierarchy:controllers:/group
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") machine = within_ancestors(machine, root, group, kVersion2);
    if (controllers.find(",memory,") != std::string::npos) {
      machine = within_ancestors(machine, root / "memory", group, kVersion1);
    }
  }
  return machine;
}

MemoryInfo info() {
  constexpr std::size_t kKibibyte = 1024;
  MemoryInfo machine;
  machine.total_bytes = read_field("/proc/meminfo", "MemTotal:").value_or(0) * kKibibyte;
  machine.free_bytes = read_field("/proc/meminfo", "MemAvailable:").value_or(0) * kKibibyte;
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream membership;
  if (file) membership << file.rdbuf();
  return within_groups(machine, membership.str(), "/sys/fs/cgroup");
}

}  // namespace headroom::detail::host_memory
