#include "runtime/memory/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

namespace headroom::detail {
namespace {

/// "7f00-7f10 rw-p 00000000 00:00 0    [heap]"; false for the lines of fields between.
bool parse_head(const std::string& line, Mapping& mapping) {
  std::istringstream fields(line);
  char dash = 0;
  std::string access;
  std::string skipped;
  if (!(fields >> std::hex >> mapping.begin >> dash >> mapping.end >> access) || dash != '-' || access.size() != 4) {
    return false;
  }
  fields >> skipped >> skipped >> skipped >> std::ws;  // offset, device, inode
  std::getline(fields, mapping.name);
  mapping.accessible = access[0] == 'r' || access[1] == 'w' || access[2] == 'x';
  mapping.writable = access[1] == 'w';
  mapping.shared = access[3] == 's';
  return true;
}

}  // namespace

std::vector<Mapping> parse_mappings(std::istream& text) {
  constexpr std::size_t kKibibyte = 1024;
  constexpr const char* kResident = "Rss:";
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(text, line);) {
    const bool is_field = line.find(':') < line.find(' ');  // "Rss:   4 kB"; a head has spaces before its "00:00"
    if (!is_field) {
      Mapping mapping;
      if (parse_head(line, mapping)) mappings.push_back(std::move(mapping));
    } else if (!mappings.empty() && line.rfind(kResident, 0) == 0) {
      mappings.back().resident_bytes = std::stoull(line.substr(std::strlen(kResident))) * kKibibyte;
    }
  }
  return mappings;
}

std::vector<Mapping> mappings(const char* path) {
  std::ifstream file(path);
  return parse_mappings(file);
}

ProcessFile::ProcessFile(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}

ProcessFile::~ProcessFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ProcessFile::read(std::uint64_t offset, void* into, std::size_t bytes) const {
  const ssize_t done = descriptor_ < 0 ? 0 : pread(descriptor_, into, bytes, static_cast<off_t>(offset));
  const std::size_t known = done < 0 ? 0 : static_cast<std::size_t>(done);
  std::memset(static_cast<std::byte*>(into) + known, 0, bytes - known);
}

std::size_t resident_bytes(const ProcessFile& pagemap, std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::array<std::uint64_t, 512> entries{};
  std::size_t resident = 0;
  for (std::uintptr_t page = begin / page_bytes; page * page_bytes < end;) {
    const std::size_t left = (end - page * page_bytes + page_bytes - 1) / page_bytes;
    const std::size_t count = std::min(left, entries.size());
    pagemap.read(page * sizeof(std::uint64_t), entries.data(), count * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < count; ++i, ++page) {
      if ((entries[i] & kPresent) == 0) continue;
      resident += std::min(end, (page + 1) * page_bytes) - std::max(begin, page * page_bytes);
    }
  }
  return resident;
}

}  // namespace headroom::detail
