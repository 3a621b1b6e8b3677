#include "runtime/memory/attribution.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/memory/glibc_memory.hpp"

namespace headroom::detail {

constexpr Attribution::Owner Attribution::kReserved{"reserved", ""};
constexpr Attribution::Owner Attribution::kCode{
    "code", "/proc/self/smaps: segments of the program and of its libraries (dl_iterate_phdr), [vdso]"};
constexpr Attribution::Owner Attribution::kMalloc{
    "malloc", "/proc/self/smaps: [heap], and mappings that malloc's headers tile; without what is named apart"};
constexpr Attribution::Owner Attribution::kStacks{
    "thread_stacks",
    "/proc/self/smaps: [stack], mappings that hold a thread's control block, stacks kept for new threads"};
constexpr Attribution::Owner Attribution::kShared{"shared_memory",
                                                  "/proc/self/smaps: writable mappings shared with other processes"};
constexpr Attribution::Owner Attribution::kFiles{"mapped_files", "/proc/self/smaps: mapped files, but for code"};
constexpr Attribution::Owner Attribution::kNobody{"", ""};

Attribution::Attribution(std::span<const CachingAllocator* const> allocators, std::span<const KnownRange> known)
    : control_blocks_(thread_control_blocks()) {
  for (const CachingAllocator* allocator : allocators) {
    const AllocatorLayout layout = allocator->layout();
    for (const std::uint64_t base : layout.region_base)
      claims_.push_back({base, base + layout.region_bytes, kReserved});
    claims_.push_back({layout.slot_base, layout.slot_base + layout.region_bytes, kReserved});
  }
  for (const KnownRange& range : known) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    claims_.push_back({begin, begin + range.bytes, {range.name.c_str(), range.source.c_str()}});
  }
  for (const AddressRange& object : loaded_objects()) claims_.push_back({object.begin, object.end, kCode});
  std::sort(claims_.begin(), claims_.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
}

void Attribution::add(const Mapping& mapping, const Mapping* before) {
  if (mapping.resident_bytes == 0) return;
  use_.used_bytes += mapping.resident_bytes;
  const std::vector<Piece> pieces = pieces_of(mapping, before);
  std::size_t left = mapping.resident_bytes;
  for (const Piece& piece : pieces) {
    const bool whole = pieces.size() == 1;
    const std::size_t bytes = whole ? left : std::min(left, resident_bytes(pagemap_, piece.begin, piece.end));
    give(piece.owner, bytes);
    left -= bytes;
  }
  give(kNobody, left);
}

void Attribution::name(const std::string& owner, std::size_t bytes, const std::string& source) {
  std::size_t& malloc = use_.external[kMalloc.name].bytes;
  const std::size_t of_malloc = std::min(bytes, malloc);
  const std::size_t of_nobody = std::min(bytes - of_malloc, use_.unattributed_bytes);
  malloc -= of_malloc;
  use_.unattributed_bytes -= of_nobody;
  ExternalBytes& named = use_.external[owner];
  named.bytes += of_malloc + of_nobody;
  named.source = source;
}

MemoryUse Attribution::use() const {
  MemoryUse use = use_;
  std::erase_if(use.external, [](const auto& owner) { return owner.second.bytes == 0; });
  return use;
}

/// The claims on a mapping, and between them what the mapping itself tells.
std::vector<Attribution::Piece> Attribution::pieces_of(const Mapping& mapping, const Mapping* before) const {
  std::vector<Piece> pieces;
  std::uintptr_t at = mapping.begin;
  for (const Piece& claim : claims_) {
    if (claim.end <= at) continue;
    if (claim.begin >= mapping.end) break;
    const std::uintptr_t begin = std::max(at, claim.begin);
    add_gap(pieces, mapping, before, at, begin);
    at = std::min(mapping.end, claim.end);
    append(pieces, begin, at, claim.owner);
  }
  add_gap(pieces, mapping, before, at, mapping.end);
  return pieces;
}

void Attribution::add_gap(std::vector<Piece>& pieces, const Mapping& mapping, const Mapping* before,
                          std::uintptr_t begin, std::uintptr_t end) const {
  if (begin == end) return;
  const bool is_anonymous = mapping.name.empty() || mapping.name.starts_with("[anon");
  if (mapping.shared || !is_anonymous) {
    append(pieces, begin, end, owner_of_named(mapping));
  } else if (is_kept_stack(mapping, before)) {
    append(pieces, begin, end, kStacks);
  } else {
    add_anonymous(pieces, mapping, before, begin, end);
  }
}

void Attribution::add_anonymous(std::vector<Piece>& pieces, const Mapping& mapping, const Mapping* before,
                                std::uintptr_t begin, std::uintptr_t end) const {
  const auto thread = std::lower_bound(control_blocks_.begin(), control_blocks_.end(), begin);
  if (thread != control_blocks_.end() && *thread < end) {
    const AddressRange stack = stack_around(*thread, mapping, before);
    const std::uintptr_t bottom = std::clamp(stack.begin, begin, end);
    const std::uintptr_t top = std::clamp(stack.end, bottom, end);
    add_malloc(pieces, begin, bottom);
    append(pieces, bottom, top, kStacks);
    begin = top;
  }
  add_malloc(pieces, begin, end);
}

void Attribution::add_malloc(std::vector<Piece>& pieces, std::uintptr_t begin, std::uintptr_t end) const {
  const std::uintptr_t known = end_of_malloc(memory_, begin, end);
  append(pieces, begin, known, kMalloc);
  append(pieces, known, end, kNobody);
}

void Attribution::append(std::vector<Piece>& pieces, std::uintptr_t begin, std::uintptr_t end, const Owner& owner) {
  if (begin == end) return;
  if (!pieces.empty() && pieces.back().end == begin && pieces.back().owner.name == owner.name) {
    pieces.back().end = end;
  } else {
    pieces.push_back({begin, end, owner});
  }
}

const Attribution::Owner& Attribution::owner_of_named(const Mapping& mapping) {
  if (mapping.shared) return mapping.writable ? kShared : kFiles;
  if (mapping.name == "[heap]") return kMalloc;
  if (mapping.name == "[stack]") return kStacks;
  return mapping.name.front() == '[' ? kCode : kFiles;  // [vdso], [vvar]
}

void Attribution::give(const Owner& owner, std::size_t bytes) {
  if (owner.name == kReserved.name) {
    use_.reserved_bytes += bytes;
  } else if (owner.name == kNobody.name) {
    use_.unattributed_bytes += bytes;
  } else {
    ExternalBytes& figure = use_.external[owner.name];
    figure.bytes += bytes;
    figure.source = owner.source;
  }
}

}  // namespace headroom::detail
