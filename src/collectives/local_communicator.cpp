#include "collectives/local_communicator.hpp"

#include "collectives/rank_order_sum.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace headroom::detail {
namespace {

void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

/// Post, wait for all, move my part straight from the peers' buffers, wait for all.
class LocalFlight final : public Flight {
 public:
  LocalFlight(std::shared_ptr<Rendezvous> rendezvous, const CollectiveRequest& request, SharedGroup group)
      : rendezvous_(std::move(rendezvous)), request_(request), rank_(group->rank), size_(group->size()) {
    visit_.lane = request.lane;
    visit_.group = std::move(group);
    sources_.resize(static_cast<std::size_t>(size_));
    if (request.signature.kind == CollectiveKind::agree) largest_.resize(request.slice_bytes / sizeof(std::uint64_t));
  }

  Progress poll() override {
    if (visit_.gate == 0) {
      rendezvous_->arrive(visit_, {request_.signature, request_.send, request_.recv});
    }
    const int parts = request_.signature.kind == CollectiveKind::all_reduce ? 2 : 1;
    while (rendezvous_->pass(visit_, part_ == parts)) {
      if (part_ == parts) {
        finish();
        return Progress::done;
      }
      move(part_++);
      rendezvous_->leave(visit_);
    }
    return Progress::blocked;
  }

  void pause(std::chrono::microseconds most) override { rendezvous_->pause(visit_, most); }

 private:
  [[nodiscard]] const Rendezvous::Posted& peer(int rank) const { return rendezvous_->posted(visit_, rank); }

  void move(int part) noexcept {
    switch (request_.signature.kind) {
      case CollectiveKind::all_gather: return gather();
      case CollectiveKind::reduce_scatter:
        return sum_slice(static_cast<std::size_t>(rank_) * request_.slice_bytes, request_.recv,
                         static_cast<std::size_t>(request_.signature.numel));
      case CollectiveKind::all_reduce: return part == 0 ? sum_chunk() : copy_chunks();
      case CollectiveKind::broadcast:
      case CollectiveKind::share: return copy(request_.recv, peer(request_.signature.root).send, request_.slice_bytes);
      case CollectiveKind::agree: return take_largest();
      case CollectiveKind::options: return;
    }
  }

  void gather() noexcept {
    for (int step = 0; step < size_; ++step) {
      const int from = (rank_ + step) % size_;  // Each rank starts at another peer's memory.
      copy(request_.recv + static_cast<std::size_t>(from) * request_.slice_bytes, peer(from).send,
           request_.slice_bytes);
    }
  }

  void sum_slice(std::size_t begin_bytes, std::byte* out, std::size_t numel) noexcept {
    for (int rank = 0; rank < size_; ++rank) sources_[static_cast<std::size_t>(rank)] = peer(rank).send + begin_bytes;
    sum_in_rank_order(request_.signature.dtype, sources_, out, numel);
  }

  [[nodiscard]] Chunk chunk(int rank) const noexcept {
    return chunk_of(static_cast<std::size_t>(request_.signature.numel), rank, size_);
  }

  // In place: the peers read only their own chunks of this rank's buffer.
  void sum_chunk() noexcept {
    const Chunk mine = chunk(rank_);
    const std::size_t begin_bytes = mine.begin * size_of(request_.signature.dtype);
    sum_slice(begin_bytes, request_.recv + begin_bytes, mine.numel);
  }

  void copy_chunks() noexcept {
    const std::size_t element_bytes = size_of(request_.signature.dtype);
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ + step) % size_;
      const Chunk theirs = chunk(from);
      copy(request_.recv + theirs.begin * element_bytes, peer(from).send + theirs.begin * element_bytes,
           theirs.numel * element_bytes);
    }
  }

  void take_largest() noexcept {
    for (int rank = 0; rank < size_; ++rank) {
      const auto* const words = reinterpret_cast<const std::uint64_t*>(peer(rank).send);
      for (std::size_t i = 0; i < largest_.size(); ++i) largest_[i] = std::max(largest_[i], words[i]);
    }
  }

  void finish() noexcept {
    copy(request_.recv, reinterpret_cast<const std::byte*>(largest_.data()), largest_.size() * sizeof(std::uint64_t));
  }

  std::shared_ptr<Rendezvous> rendezvous_;
  CollectiveRequest request_;
  int rank_, size_;
  int part_ = 0;
  Rendezvous::Visit visit_;
  std::vector<const std::byte*> sources_;
  std::vector<std::uint64_t> largest_;
};

}  // namespace

LocalCommunicator::LocalCommunicator(Device device, std::shared_ptr<Rendezvous> rendezvous, SharedGroup group,
                                     CommunicatorName name)
    : HostCommunicator(std::move(device), std::move(group), name), rendezvous_(std::move(rendezvous)) {}

std::shared_ptr<Flight> LocalCommunicator::make_flight(const CollectiveRequest& request) {
  return std::make_shared<LocalFlight>(rendezvous_, request, group());
}

}  // namespace headroom::detail
