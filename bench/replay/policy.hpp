#pragma once

#include <headroom/events.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace headroom::bench {

/// An allocator that only decides: where blocks lie and how much is reserved. Sizes in bytes.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  /// `number`: of the allocation, used again after its free. False: refused, for the limit's sake.
  virtual bool allocate(std::uint32_t number, std::size_t bytes, StreamId stream, Tag tag) = 0;
  /// No stream uses it any more. A refused one is no matter.
  virtual void free(std::uint32_t number) = 0;

  [[nodiscard]] virtual std::size_t reserved_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::size_t segments() const noexcept = 0;
  /// Calls `visit` with the size of each free block.
  virtual void visit_free(const std::function<void(std::size_t)>& visit) const = 0;
};

/// PyTorch's native caching policy (c10 CUDACachingAllocator, defaults), as a model: pools by stream and by size (small
/// to 1 MiB), sizes in 512 bytes, segments of 2 MiB, 20 MiB or whole 2 MiB from 10 MiB on, best fit, splitting where
/// 512 bytes (small) or more than 1 MiB (large) are left, joining within a segment, no reuse across streams; at the
/// limit, all segments that are free as a whole go back first.
[[nodiscard]] std::unique_ptr<Policy> make_native_policy(std::size_t limit_bytes);

/// The same with expandable_segments: one growing segment a pool and stream, in pages of 2 MiB (small) and 20 MiB
/// (large), split always, grown at its end, with the free end counted in; whole free pages go back at the limit only.
[[nodiscard]] std::unique_ptr<Policy> make_expandable_policy(std::size_t limit_bytes);

inline constexpr std::size_t kMebi = std::size_t{1} << 20U;

/// What both have in common.
struct TorchSizes {
  static constexpr std::size_t kGranule = 512, kSmall = kMebi, kSmallSegment = 2 * kMebi, kLargeSegment = 20 * kMebi,
                               kMinLarge = 10 * kMebi;
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept {
    return bytes < kGranule ? kGranule : (bytes + kGranule - 1) / kGranule * kGranule;
  }
};

/// A block of a baseline: neighbours within a segment, in order of address.
struct PolicyBlock {
  std::size_t address = 0, bytes = 0;
  PolicyBlock *before = nullptr, *after = nullptr;
  bool free = false;
};

/// Free blocks of one pool and stream, smallest first, then lowest.
struct BySizeThenAddress {
  bool operator()(const PolicyBlock* a, const PolicyBlock* b) const noexcept {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};
using FreeBlocks = std::set<PolicyBlock*, BySizeThenAddress>;

/// The end of `block`, from `bytes` on, becomes a free block behind it, in no set.
PolicyBlock* split_block(PolicyBlock* block, std::size_t bytes);
/// `block`, in no set, absorbs free neighbours, which leave `blocks`; the result, in no set.
PolicyBlock* join_block(PolicyBlock* block, FreeBlocks& blocks);

}  // namespace headroom::bench
