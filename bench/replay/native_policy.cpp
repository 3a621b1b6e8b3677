#include "replay/policy.hpp"

#include <map>
#include <utility>

namespace headroom::bench {

PolicyBlock* split_block(PolicyBlock* block, std::size_t bytes) {
  auto* rest = new PolicyBlock{block->address + bytes, block->bytes - bytes, block, block->after, true};
  if (block->after != nullptr) block->after->before = rest;
  block->after = rest;
  block->bytes = bytes;
  return rest;
}

PolicyBlock* join_block(PolicyBlock* block, FreeBlocks& blocks) {
  PolicyBlock* left = block;
  if (block->before != nullptr && block->before->free) {
    left = block->before;
    blocks.erase(left);
  }
  while (left->after != nullptr && (left->after == block || left->after->free)) {
    PolicyBlock* const gone = left->after;
    if (gone != block) blocks.erase(gone);
    left->bytes += gone->bytes;
    left->after = gone->after;
    if (left->after != nullptr) left->after->before = left;
    delete gone;  // NOLINT(cppcoreguidelines-owning-memory): blocks own each other by their links
  }
  left->free = true;
  return left;
}

namespace {

class NativePolicy final : public Policy {
 public:
  explicit NativePolicy(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~NativePolicy() override {
    for (const Segment& segment : segments_) {
      for (PolicyBlock* block = segment.first; block != nullptr;) delete std::exchange(block, block->after);
    }
  }
  NativePolicy(const NativePolicy&) = delete;
  NativePolicy& operator=(const NativePolicy&) = delete;

  bool allocate(std::uint32_t number, std::size_t bytes, StreamId stream, Tag /*tag*/) override {
    const std::size_t size = TorchSizes::rounded(bytes);
    const bool small = size <= TorchSizes::kSmall;
    FreeBlocks& pool = pools_[{stream, small}];
    PolicyBlock wanted;
    wanted.bytes = size;
    const auto found = pool.lower_bound(&wanted);
    PolicyBlock* block = nullptr;
    if (found != pool.end()) {
      block = *found;
      pool.erase(found);
    } else {
      block = new_segment(segment_bytes(size));
      if (block == nullptr) return false;
    }
    const std::size_t rest = block->bytes - size;
    if (small ? rest >= TorchSizes::kGranule : rest > TorchSizes::kSmall) pool.insert(split_block(block, size));
    block->free = false;
    if (live_.size() <= number) live_.resize(number + std::size_t{1});
    live_[number] = {block, &pool};
    return true;
  }

  void free(std::uint32_t number) override {
    if (number >= live_.size() || live_[number].block == nullptr) return;
    const Live live = std::exchange(live_[number], Live{});
    live.pool->insert(join_block(live.block, *live.pool));
  }

  [[nodiscard]] std::size_t reserved_bytes() const noexcept override { return reserved_bytes_; }
  [[nodiscard]] std::size_t segments() const noexcept override { return segments_.size(); }
  void visit_free(const std::function<void(std::size_t)>& visit) const override {
    for (const auto& [key, pool] : pools_) {
      for (const PolicyBlock* block : pool) visit(block->bytes);
    }
  }

 private:
  struct Segment {
    PolicyBlock* first;
    std::size_t bytes;
  };
  struct Live {
    PolicyBlock* block = nullptr;
    FreeBlocks* pool = nullptr;
  };

  static std::size_t segment_bytes(std::size_t size) {
    if (size <= TorchSizes::kSmall) return TorchSizes::kSmallSegment;
    if (size < TorchSizes::kMinLarge) return TorchSizes::kLargeSegment;
    return (size + TorchSizes::kSmallSegment - 1) / TorchSizes::kSmallSegment * TorchSizes::kSmallSegment;
  }

  PolicyBlock* new_segment(std::size_t bytes) {
    if (reserved_bytes_ + bytes > limit_bytes_) release_cached();
    if (reserved_bytes_ + bytes > limit_bytes_) return nullptr;
    reserved_bytes_ += bytes;
    auto* block = new PolicyBlock{next_address_, bytes, nullptr, nullptr, false};
    next_address_ += bytes;
    segments_.push_back({block, bytes});
    return block;
  }

  void release_cached() {
    std::erase_if(segments_, [this](const Segment& segment) {
      PolicyBlock* const block = segment.first;
      if (!block->free || block->after != nullptr) return false;
      for (auto& [key, pool] : pools_) {
        const auto found = pool.find(block);
        if (found != pool.end() && *found == block) pool.erase(found);
      }
      reserved_bytes_ -= segment.bytes;
      delete block;  // NOLINT(cppcoreguidelines-owning-memory)
      return true;
    });
  }

  std::size_t limit_bytes_, reserved_bytes_ = 0, next_address_ = 0;
  std::map<std::pair<StreamId, bool>, FreeBlocks> pools_;
  std::vector<Segment> segments_;
  std::vector<Live> live_;
};

}  // namespace

std::unique_ptr<Policy> make_native_policy(std::size_t limit_bytes) {
  return std::make_unique<NativePolicy>(limit_bytes);
}

}  // namespace headroom::bench
