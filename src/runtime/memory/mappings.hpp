#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace headroom::detail {

/// One mapping of this process, as the kernel says.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  std::size_t resident_bytes = 0;
  bool accessible = false, writable = false, shared = false;
  std::string name;  ///< A path, "[heap]", ...; empty: anonymous.

  [[nodiscard]] std::size_t bytes() const noexcept { return end - begin; }
  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
};

/// By address. `text`: of a /proc/PID/smaps.
[[nodiscard]] std::vector<Mapping> parse_mappings(std::istream& text);
/// Of this process, from its smaps, or its maps, which do not say what is resident; empty where the system says
/// nothing.
[[nodiscard]] std::vector<Mapping> mappings(const char* path = "/proc/self/smaps");

/// A file of /proc/self that is read by offset. What cannot be read reads as 0.
class ProcessFile {
 public:
  explicit ProcessFile(const char* path);
  ~ProcessFile();
  ProcessFile(const ProcessFile&) = delete;
  ProcessFile& operator=(const ProcessFile&) = delete;
  void read(std::uint64_t offset, void* into, std::size_t bytes) const;

 private:
  int descriptor_;
};

/// Of [begin, end), counted page by page: for mappings that several owners share.
[[nodiscard]] std::size_t resident_bytes(const ProcessFile& pagemap, std::uintptr_t begin, std::uintptr_t end);

}  // namespace headroom::detail
