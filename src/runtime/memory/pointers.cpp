#include "runtime/memory/allocator_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

namespace headroom::detail {
namespace {
std::string text_of(const std::byte* pointer) {
  return fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(pointer));
}
}  // namespace

std::byte* AllocatorState::detach(Buffer& buffer) {
  if (!buffer) throw std::logic_error("CachingAllocator::detach: an empty or moved-from buffer");
  if (buffer.state_.get() != this) throw std::logic_error("CachingAllocator::detach: a buffer of another allocator");
  const Lock lock(mutex);
  const Allocation& a = allocations[buffer.block_];
  const std::string& name = log.names()[a.name];
  if (buffer.share_ != 0 || a.shares != 1) {
    throw std::logic_error(fmt::format("CachingAllocator::detach: '{}' {}: drop all views first", name,
                                       buffer.share_ != 0 ? "is held by a view" : "has views"));
  }
  if (a.bytes == 0) throw std::logic_error(fmt::format("CachingAllocator::detach: '{}' has no bytes", name));
  std::byte* const pointer = buffer.data_;
  detached[pointer] = Detached{buffer.block_, a.id, a.name, false};
  buffer.data_ = nullptr;
  buffer.bytes_ = 0;
  buffer.state_.reset();  // not the last owner: the CachingAllocator is there
  return pointer;
}

void AllocatorState::free(std::byte* pointer) {
  std::uint32_t allocation = kNoIndex;
  {
    const Lock lock(mutex);
    const auto found = detached.find(pointer);
    if (found == detached.end()) throw std::logic_error(stranger_text(pointer));
    Detached& entry = found->second;
    if (entry.freed) {
      throw std::logic_error(fmt::format("CachingAllocator::free: {} ('{}', allocation {}) was freed already",
                                         text_of(pointer), log.names()[entry.name], entry.id));
    }
    entry.freed = true;
    allocation = entry.allocation;
  }
  release(allocation, 0);
}

/// Why a pointer that nobody detached cannot be freed.
std::string AllocatorState::stranger_text(const std::byte* pointer) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::uint32_t i = 0; i < allocations.size(); ++i) {
    const Allocation& a = allocations[i];
    if (a.state == Allocation::State::unused) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(address(a));
    if (at < begin || at - begin >= a.bytes) continue;
    const std::string& name = log.names()[a.name];
    if (a.state == Allocation::State::pending) {
      return fmt::format("CachingAllocator::free: {} lies in '{}', which is freed already", text_of(pointer), name);
    }
    if (at > begin) {
      return fmt::format("CachingAllocator::free: {} is {} bytes into '{}', not its beginning", text_of(pointer),
                         at - begin, name);
    }
    return fmt::format("CachingAllocator::free: {} is '{}', which a Buffer owns: it was not detached", text_of(pointer),
                       name);
  }
  for (const std::byte* base : {arenas[0].base, arenas[1].base, arenas[2].base, slot_base}) {
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    if (at < begin || at - begin >= capacity_bytes) continue;
    return fmt::format("CachingAllocator::free: nothing is allocated at {}", text_of(pointer));
  }
  return fmt::format("CachingAllocator::free: {} is not of this allocator, on {}", text_of(pointer), backend.name());
}

void AllocatorState::end() noexcept {
  {
    const Lock lock(mutex);
    ended = true;
  }
  for (const auto& entry : detached) {  // nobody else can change it any more
    if (!entry.second.freed) release(entry.second.allocation, 0);
  }
}

void AllocatorState::expect_running(const char* member) const {
  if (ended) throw std::logic_error(fmt::format("Buffer::{} after the end of its CachingAllocator", member));
}

}  // namespace headroom::detail
