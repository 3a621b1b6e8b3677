#include <headroom/kernels.hpp>

#include <algorithm>
#include <functional>

#include "runtime/memory/mappings.hpp"

// Exported by OpenBLAS for its own interface, and declared in none of its headers.
extern "C" {
void* blas_memory_alloc(int procedure);
void blas_memory_free(void* buffer);
}

namespace headroom::kernels {
namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The buffers that OpenBLAS has and that are not in use now, by address. It hands those out before it maps another
/// one, which nobody has touched.
std::vector<const void*> packing_buffers() {
  constexpr std::size_t kStart = 64 * 1024;  // operands are packed from the start on
  const detail::ProcessFile pagemap("/proc/self/pagemap");
  std::vector<const void*> buffers;
  std::vector<void*> taken;
  for (bool touched = true; touched;) {
    void* const buffer = blas_memory_alloc(0);
    if (buffer == nullptr) break;
    taken.push_back(buffer);
    touched = detail::resident_bytes(pagemap, address(buffer), address(buffer) + kStart) > 0;
    if (touched) buffers.push_back(buffer);
  }
  for (void* const buffer : taken) blas_memory_free(buffer);
  std::sort(buffers.begin(), buffers.end(), std::less<>());
  return buffers;
}

}  // namespace

std::vector<KnownRange> workspaces() {
  const std::vector<const void*> buffers = packing_buffers();
  const std::vector<detail::Mapping> mappings = detail::mappings("/proc/self/maps");
  std::vector<KnownRange> ranges;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::uintptr_t begin = address(buffers[i]);
    const auto mapping =
        std::find_if(mappings.begin(), mappings.end(), [begin](const auto& each) { return each.contains(begin); });
    if (mapping == mappings.end()) continue;
    const std::uintptr_t next = i + 1 < buffers.size() ? address(buffers[i + 1]) : mapping->end;
    ranges.push_back({buffers[i], std::min(mapping->end, next) - begin, "openblas_buffers",
                      "mappings of the buffers that blas_memory_alloc hands out"});
  }
  return ranges;
}

}  // namespace headroom::kernels
