#include "run/process_memory.hpp"

#include <fstream>
#include <limits>
#include <string>

namespace headroom::bench {

ProcessMemory process_memory() {
  constexpr std::size_t kKibibyte = 1024;
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::size_t kibibytes = 0;
    if (key == "VmRSS:" && status >> kibibytes) memory.resident_bytes = kibibytes * kKibibyte;
    if (key == "VmHWM:" && status >> kibibytes) memory.peak_resident_bytes = kibibytes * kKibibyte;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return memory;
}

}  // namespace headroom::bench
