#pragma once

#include "runtime/memory/mappings.hpp"

#include <vector>

/// Which mappings are whose, by how glibc and the dynamic linker lay them out.
namespace headroom::detail {

struct AddressRange {
  std::uintptr_t begin = 0, end = 0;
};

/// Whole pages of the program and of each library that is loaded: code, data, and zeroed data that no file backs.
[[nodiscard]] std::vector<AddressRange> loaded_objects();

/// Of each live thread, an address in its control block, which lies at the top of its stack's mapping (the main
/// thread's: in its thread-local storage). By address.
[[nodiscard]] std::vector<std::uintptr_t> thread_control_blocks();

/// The part of a thread's mapping that is its stack: all of it, unless the mapping grew together with a neighbour.
/// `before`: the mapping at the next lower address, if any: a guard page?
[[nodiscard]] AddressRange stack_around(std::uintptr_t control_block, const Mapping& mapping, const Mapping* before);

/// A stack of the default size above its guard page: one that glibc keeps for the next thread.
[[nodiscard]] bool is_kept_stack(const Mapping& mapping, const Mapping* before);

/// The end of the run that begins at `begin` of what malloc mapped: heaps of its further arenas, and blocks that have a
/// mapping each. Their headers say so; `memory` reads them.
[[nodiscard]] std::uintptr_t end_of_malloc(const ProcessFile& memory, std::uintptr_t begin, std::uintptr_t end);

}  // namespace headroom::detail
