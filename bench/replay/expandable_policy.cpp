#include "replay/policy.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace headroom::bench {
namespace {

class ExpandablePolicy final : public Policy {
 public:
  explicit ExpandablePolicy(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~ExpandablePolicy() override {
    for (auto& [key, segment] : segments_) {
      for (PolicyBlock* block = segment.first; block != nullptr;) delete std::exchange(block, block->after);
    }
  }
  ExpandablePolicy(const ExpandablePolicy&) = delete;
  ExpandablePolicy& operator=(const ExpandablePolicy&) = delete;

  bool allocate(std::uint32_t number, std::size_t bytes, StreamId stream, Tag /*tag*/) override {
    const std::size_t size = TorchSizes::rounded(bytes);
    const bool small = size <= TorchSizes::kSmall;
    Segment& segment = segments_[{stream, small}];
    segment.page_bytes = small ? TorchSizes::kSmallSegment : TorchSizes::kLargeSegment;
    PolicyBlock wanted;
    wanted.bytes = size;
    const auto found = segment.blocks.lower_bound(&wanted);
    PolicyBlock* block = found != segment.blocks.end() ? *found : grow(segment, size);
    if (block == nullptr) return false;
    segment.blocks.erase(block);
    if (block->bytes - size >= TorchSizes::kGranule) insert(segment, split_block(block, size));
    block->free = false;
    if (segment.last == block && block->after != nullptr) segment.last = block->after;
    if (live_.size() <= number) live_.resize(number + std::size_t{1});
    live_[number] = {block, &segment};
    return true;
  }

  void free(std::uint32_t number) override {
    if (number >= live_.size() || live_[number].block == nullptr) return;
    const Live live = std::exchange(live_[number], Live{});
    insert(*live.segment, join_block(live.block, live.segment->blocks));
  }

  [[nodiscard]] std::size_t reserved_bytes() const noexcept override { return reserved_bytes_; }
  [[nodiscard]] std::size_t segments() const noexcept override { return segments_.size(); }
  void visit_free(const std::function<void(std::size_t)>& visit) const override {
    for (const auto& [key, segment] : segments_) {
      for (const PolicyBlock* block : segment.blocks) visit(block->bytes);
    }
  }

 private:
  struct Segment {
    PolicyBlock *first = nullptr, *last = nullptr;
    FreeBlocks blocks;
    std::size_t page_bytes = 0;
  };
  struct Live {
    PolicyBlock* block = nullptr;
    Segment* segment = nullptr;
  };

  static void insert(Segment& segment, PolicyBlock* block) {
    segment.blocks.insert(block);
    if (block->after == nullptr) segment.last = block;
    if (block->before == nullptr) segment.first = block;
  }

  /// A free block of at least `size` at the segment's end: its free last block and as many pages as that lacks.
  PolicyBlock* grow(Segment& segment, std::size_t size) {
    const auto missing = [&] {
      const std::size_t had = segment.last != nullptr && segment.last->free ? segment.last->bytes : 0;
      return (size - had + segment.page_bytes - 1) / segment.page_bytes * segment.page_bytes;
    };
    if (reserved_bytes_ + missing() > limit_bytes_) release_cached();
    const std::size_t bytes = missing();
    if (reserved_bytes_ + bytes > limit_bytes_) return nullptr;
    reserved_bytes_ += bytes;
    PolicyBlock* const last = segment.last;
    if (last != nullptr && last->free) {
      segment.blocks.erase(last);
      last->bytes += bytes;
      insert(segment, last);
      return last;
    }
    auto* block = new PolicyBlock{last == nullptr ? 0 : last->address + last->bytes, bytes, last, nullptr, true};
    if (last != nullptr) last->after = block;
    insert(segment, block);
    return block;
  }

  /// Whole pages that are free at the ends. (Holes within a segment stay: the model's addresses grow at the end only.)
  void release_cached() {
    for (auto& [key, segment] : segments_) {
      PolicyBlock* const last = segment.last;
      if (last == nullptr || !last->free) continue;
      const std::size_t bytes = last->bytes / segment.page_bytes * segment.page_bytes;
      if (bytes == 0) continue;
      segment.blocks.erase(last);
      reserved_bytes_ -= bytes;
      last->bytes -= bytes;
      if (last->bytes > 0) {
        insert(segment, last);
        continue;
      }
      segment.last = last->before;
      (segment.last != nullptr ? segment.last->after : segment.first) = nullptr;
      delete last;  // NOLINT(cppcoreguidelines-owning-memory)
    }
  }

  std::size_t limit_bytes_, reserved_bytes_ = 0;
  std::map<std::pair<StreamId, bool>, Segment> segments_;
  std::vector<Live> live_;
};

}  // namespace

std::unique_ptr<Policy> make_expandable_policy(std::size_t limit_bytes) {
  return std::make_unique<ExpandablePolicy>(limit_bytes);
}

}  // namespace headroom::bench
