#include <headroom/process_memory.hpp>
#include <headroom/trace.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "runtime/memory/allocator_state.hpp"
#include "runtime/memory/attribution.hpp"

namespace headroom {
namespace {

std::size_t peak_used_bytes() {
  constexpr std::size_t kKibibyte = 1024;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key; status.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::size_t kibibytes = 0;
    if (key == "VmHWM:" && status >> kibibytes) return kibibytes * kKibibyte;
  }
  return 0;
}

std::size_t event_log_bytes(const CachingAllocator& allocator) {
  const detail::AllocatorState& state = detail::AllocatorState::of(allocator);
  const detail::AllocatorState::Lock lock(state.mutex);
  return state.log.bytes();
}

}  // namespace

MemoryUse process_memory(std::span<const CachingAllocator* const> allocators, std::span<const KnownRange> known) {
  detail::Attribution attribution(allocators, known);
  const std::vector<detail::Mapping> mappings = detail::mappings();
  for (std::size_t i = 0; i < mappings.size(); ++i) attribution.add(mappings[i], i > 0 ? &mappings[i - 1] : nullptr);

  std::vector<Device> devices;
  for (const CachingAllocator* allocator : allocators) {
    attribution.name("event_log", event_log_bytes(*allocator), "the allocators: their logs of events");
    const Device device = allocator->device();
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
      attribution.name("trace", device.trace().bytes(), "the allocators' devices: Trace::bytes");
    }
    for (const auto& [name, figure] : allocator->external()) attribution.name(name, figure.bytes, figure.source);
  }
  MemoryUse use = attribution.use();
  use.peak_used_bytes = peak_used_bytes();
  return use;
}

}  // namespace headroom
