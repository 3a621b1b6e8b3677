#include "runtime/memory/glibc_memory.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

namespace headroom::detail {
namespace {

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

/// Of a thread that is made without attributes; without its guard.
std::size_t default_stack_bytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes) != 0) return 0;
  std::size_t bytes = 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

bool is_guard(const Mapping* before, const Mapping& mapping) {
  return before != nullptr && before->end == mapping.begin && !before->accessible;
}

int add_segments(dl_phdr_info* object, std::size_t /*size*/, void* ranges) {
  const std::uintptr_t page = page_bytes();
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t end = begin + segment.p_memsz;
    static_cast<std::vector<AddressRange>*>(ranges)->push_back({begin / page * page, (end + page - 1) / page * page});
  }
  return 0;
}

/// Of a block with a mapping of its own: what lies before it (nothing), then its size with flags in the low bits.
std::size_t mapped_chunk_bytes(const std::array<std::size_t, 4>& header) {
  constexpr std::size_t kFlags = 7;
  constexpr std::size_t kIsMapped = 2;
  const std::size_t bytes = header[1] & ~kFlags;
  const bool is_chunk = header[0] == 0 && (header[1] & kFlags) == kIsMapped && bytes % page_bytes() == 0;
  return is_chunk ? bytes : 0;
}

/// Of a heap of an arena other than the first: its arena, the heap before it, its size, and how much is mapped for it.
std::size_t heap_bytes(const std::array<std::size_t, 4>& header, std::uintptr_t at) {
  constexpr std::uintptr_t kLargestHeap =
      8 * 1024 * 1024 * sizeof(long);  // glibc's HEAP_MAX_SIZE; heaps are aligned to it
  const std::size_t bytes = header[3];
  const bool is_heap = at % kLargestHeap == 0 && header[0] != 0 && header[2] > 0 && header[2] <= bytes &&
                       bytes <= kLargestHeap && bytes % page_bytes() == 0;
  return is_heap ? bytes : 0;
}

}  // namespace

std::vector<AddressRange> loaded_objects() {
  std::vector<AddressRange> ranges;
  dl_iterate_phdr(add_segments, &ranges);
  return ranges;
}

std::vector<std::uintptr_t> thread_control_blocks() {
  std::vector<std::uintptr_t> blocks;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const long thread = std::stol(task.path().filename().string());
    robust_list_head* robust_mutexes = nullptr;  // a member of glibc's control block
    std::size_t length = 0;
    if (syscall(SYS_get_robust_list, thread, &robust_mutexes, &length) != 0 || robust_mutexes == nullptr) continue;
    blocks.push_back(reinterpret_cast<std::uintptr_t>(robust_mutexes));
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

AddressRange stack_around(std::uintptr_t control_block, const Mapping& mapping, const Mapping* before) {
  constexpr std::uintptr_t kAbove = 4096;  // no more of a control block lies above the address
  const std::size_t usual = default_stack_bytes();
  if (mapping.bytes() <= usual) return {mapping.begin, mapping.end};
  const std::uintptr_t page = page_bytes();
  const std::uintptr_t top = std::min(mapping.end, (control_block + kAbove + page - 1) / page * page);
  const bool bottom_known = is_guard(before, mapping) || top - mapping.begin < usual;
  return {bottom_known ? mapping.begin : top - usual, top};
}

bool is_kept_stack(const Mapping& mapping, const Mapping* before) {
  if (!is_guard(before, mapping) || !mapping.writable) return false;
  const std::size_t usual = default_stack_bytes();
  return mapping.bytes() == usual || mapping.bytes() + before->bytes() == usual;
}

std::uintptr_t end_of_malloc(const ProcessFile& memory, std::uintptr_t begin, std::uintptr_t end) {
  while (begin < end) {
    std::array<std::size_t, 4> header{};
    memory.read(begin, header.data(), sizeof(header));
    const std::size_t bytes = std::max(heap_bytes(header, begin), mapped_chunk_bytes(header));
    if (bytes == 0 || bytes > end - begin) break;
    begin += bytes;
  }
  return begin;
}

}  // namespace headroom::detail
