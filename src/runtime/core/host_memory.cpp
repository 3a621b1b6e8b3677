#include "runtime/core/host_memory.hpp"

#include <sys/mman.h>

#include <headroom/error.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/core/check.hpp"

namespace headroom::detail::host_memory {
namespace {

constexpr std::size_t kSmallPageBytes = 4096;

// The kernel finds the pages now, so that running out shows here and not at some later store.
bool populate(std::byte* at, std::size_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  if (madvise(at, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // EINVAL: a kernel before 5.14
#endif
  for (std::size_t offset = 0; offset < bytes; offset += kSmallPageBytes) {
    *reinterpret_cast<volatile unsigned char*>(at + offset) = 0;
  }
  return true;
}

}  // namespace

std::byte* reserve(std::size_t bytes) {
  const std::size_t length = align_up(bytes, kPageBytes);
  const std::size_t padded = length + kPageBytes;
  void* mapped = mmap(nullptr, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    OutOfMemory::Details details;
    details.requested_bytes = bytes;
    throw OutOfMemory("cannot reserve " + std::to_string(bytes) + " bytes of address space: " + std::strerror(errno),
                      details);
  }
  auto* const start = static_cast<std::byte*>(mapped);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(start) % kPageBytes;
  const std::size_t before = misaligned == 0 ? 0 : kPageBytes - misaligned;
  if (before > 0) munmap(start, before);
  munmap(start + before + length, kPageBytes - before);
  return start + before;
}

void unreserve(std::byte* base, std::size_t bytes) noexcept { munmap(base, align_up(bytes, kPageBytes)); }

bool commit(std::byte* at, std::size_t bytes) noexcept {
  try {
    if (info().free_bytes < bytes) return false;  // else the kernel would kill the process instead of failing
  } catch (...) {
    return false;
  }
  if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  madvise(at, bytes, MADV_HUGEPAGE);  // a wish: kernels without huge pages refuse it
  if (populate(at, bytes)) return true;
  decommit(at, bytes);
  return false;
}

bool commit_untouched(std::byte* at, std::size_t bytes) noexcept {
  return mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
}

void decommit(std::byte* at, std::size_t bytes) noexcept {
  madvise(at, bytes, MADV_DONTNEED);
  mprotect(at, bytes, PROT_NONE);
}

}  // namespace headroom::detail::host_memory
