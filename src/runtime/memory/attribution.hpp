#pragma once

#include <headroom/process_memory.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/memory/mappings.hpp"

namespace headroom::detail {

/// Puts the resident bytes of mappings down to their owners.
class Attribution {
 public:
  /// Ranges that overlap count for the one that begins first. Reads who has threads and which libraries are loaded.
  Attribution(std::span<const CachingAllocator* const> allocators, std::span<const KnownRange> known);

  /// `before`: the mapping at the next lower address, if any.
  void add(const Mapping& mapping, const Mapping* before);
  /// Bytes of a known count, at no known address: out of malloc, and as far as that has not so many, out of what nobody
  /// claims.
  void name(const std::string& owner, std::size_t bytes, const std::string& source);
  [[nodiscard]] MemoryUse use() const;

 private:
  /// Strings of static lifetime, or of the caller's ranges.
  struct Owner {
    const char *name, *source;
  };
  struct Piece {
    std::uintptr_t begin, end;
    Owner owner;
  };
  static const Owner kReserved, kCode, kMalloc, kStacks, kShared, kFiles, kNobody;

  [[nodiscard]] std::vector<Piece> pieces_of(const Mapping& mapping, const Mapping* before) const;
  void add_gap(std::vector<Piece>& pieces, const Mapping& mapping, const Mapping* before, std::uintptr_t begin,
               std::uintptr_t end) const;
  void add_anonymous(std::vector<Piece>& pieces, const Mapping& mapping, const Mapping* before, std::uintptr_t begin,
                     std::uintptr_t end) const;
  void add_malloc(std::vector<Piece>& pieces, std::uintptr_t begin, std::uintptr_t end) const;
  static void append(std::vector<Piece>& pieces, std::uintptr_t begin, std::uintptr_t end, const Owner& owner);
  [[nodiscard]] static const Owner& owner_of_named(const Mapping& mapping);
  void give(const Owner& owner, std::size_t bytes);

  ProcessFile pagemap_{"/proc/self/pagemap"}, memory_{"/proc/self/mem"};
  std::vector<std::uintptr_t> control_blocks_;
  std::vector<Piece> claims_;  ///< By address.
  MemoryUse use_;
};

}  // namespace headroom::detail
