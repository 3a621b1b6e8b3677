#include <headroom/kernels.hpp>

#include <algorithm>

#include "runtime/memory/mappings.hpp"

// Exported by OpenBLAS for its own interface, and declared in none of its headers.
extern "C" {
void* blas_memory_alloc(int procedure);
void blas_memory_free(void* buffer);
}

namespace headroom::kernels {
namespace {

/// The buffers that OpenBLAS has and that are not in use now, by address. It hands those out before it maps another
/// one, which nobody has touched.
std::vector<std::uintptr_t> packing_buffers() {
  constexpr std::size_t kStart = 64 * 1024;  // operands are packed from the start on
  const detail::ProcessFile pagemap("/proc/self/pagemap");
  std::vector<std::uintptr_t> buffers;
  std::vector<void*> taken;
  bool touched = true;
  while (touched) {
    taken.push_back(blas_memory_alloc(0));
    const auto at = reinterpret_cast<std::uintptr_t>(taken.back());
    touched = at != 0 && detail::resident_bytes(pagemap, at, at + kStart) > 0;
    if (touched) buffers.push_back(at);
  }
  for (void* const buffer : taken) {
    if (buffer != nullptr) blas_memory_free(buffer);
  }
  std::sort(buffers.begin(), buffers.end());
  return buffers;
}

}  // namespace

std::vector<KnownRange> workspaces() {
  const std::vector<std::uintptr_t> buffers = packing_buffers();
  const std::vector<detail::Mapping> mappings = detail::mappings("/proc/self/maps");
  std::vector<KnownRange> ranges;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto mapping =
        std::find_if(mappings.begin(), mappings.end(), [&](const auto& each) { return each.contains(buffers[i]); });
    if (mapping == mappings.end()) continue;
    const std::uintptr_t end = i + 1 < buffers.size() ? std::min(mapping->end, buffers[i + 1]) : mapping->end;
    ranges.push_back({reinterpret_cast<const void*>(buffers[i]), end - buffers[i], "openblas_buffers",
                      "mappings of the buffers that blas_memory_alloc hands out"});
  }
  return ranges;
}

}  // namespace headroom::kernels
