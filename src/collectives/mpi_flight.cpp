#include "collectives/mpi_flight.hpp"

#include "collectives/rank_order_sum.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace headroom::detail {
namespace {

// Progress can be seen only where a message completes, and it is what keeps the back-off short.
constexpr std::size_t kMessageBytes = 1U << 20U;

}  // namespace

MpiFlight::MpiFlight(std::shared_ptr<MpiSet> set, SharedGroup group, std::shared_ptr<MpiStaging> staging,
                     const CollectiveRequest& request)
    : set_(std::move(set)),
      group_(std::move(group)),
      staging_(std::move(staging)),
      request_(request),
      rank_(group_->rank),
      size_(group_->size()),
      element_bytes_(size_of(request.signature.dtype)) {
  const auto ranks = static_cast<std::size_t>(size_);
  signatures_.resize(ranks);
  sources_.resize(ranks);
  requests_.reserve(2 * ranks * (1 + request.slice_bytes / MpiStaging::kPieceBytes));
  for (MpiRequests& arriving : arriving_) arriving.reserve(ranks);
  if (request.signature.kind == CollectiveKind::agree) {
    words_.resize(ranks * static_cast<std::size_t>(request.signature.numel));
  }
}

Progress MpiFlight::poll() {
  try {
    return advance();
  } catch (const std::exception& error) {
    set_->fail({Failure::Kind::broken, error.what(), request_.lane, request_.signature.sequence});
    give_up();
    throw;
  }
}

Progress MpiFlight::advance() {
  set_->check(request_, stage_ != Stage::start);
  progressed_ = false;
  if (stage_ == Stage::start) post_signatures();
  if (stage_ == Stage::signatures && requests_.test(progressed_)) {
    check_signatures();
    start_data();
  }
  if (stage_ == Stage::reduction && reduce()) {
    stage_ = Stage::exchange;
    if (request_.signature.kind == CollectiveKind::all_reduce) start_exchange_of_chunks();
  }
  if (stage_ == Stage::exchange && requests_.test(progressed_)) {
    finish();
    return Progress::done;
  }
  if (progressed_) {
    since_ = std::chrono::steady_clock::now();
    backoff_.progressed();
  } else {
    check_deadline();
  }
  return Progress::blocked;
}

void MpiFlight::post_signatures() {
  since_ = std::chrono::steady_clock::now();
  stage_ = Stage::signatures;
  signatures_[static_cast<std::size_t>(rank_)] = request_.signature;
  const int tag = MpiSet::header_tag(request_.lane);
  each_peer([&](int peer) {
    requests_.receive(&signatures_[static_cast<std::size_t>(peer)], sizeof(Signature), group_->world_rank(peer), tag,
                      set_->comm());
    requests_.send(&signatures_[static_cast<std::size_t>(rank_)], sizeof(Signature), group_->world_rank(peer), tag,
                   set_->comm());
  });
}

void MpiFlight::check_signatures() {
  const bool same = std::all_of(signatures_.begin(), signatures_.end(),
                                [&](const Signature& signature) { return signature == request_.signature; });
  if (!same) fail(Failure::Kind::mismatch, describe_mismatch(request_.lane, *group_, signatures_));
}

void MpiFlight::start_data() {
  stage_ = Stage::exchange;
  switch (request_.signature.kind) {
    case CollectiveKind::all_gather: return start_gather();
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_reduce: return start_reduction();
    case CollectiveKind::broadcast:
    case CollectiveKind::share: return start_broadcast();
    case CollectiveKind::agree: return start_agreement();
    case CollectiveKind::options: return;
  }
}

void MpiFlight::start_gather() {
  const auto place = [&](int rank) { return request_.recv + static_cast<std::size_t>(rank) * request_.slice_bytes; };
  each_peer([&](int peer) {
    receive(place(peer), request_.slice_bytes, peer);
    send(request_.send, request_.slice_bytes, peer, kMessageBytes);
  });
  if (place(rank_) != request_.send && request_.slice_bytes > 0) {
    std::memcpy(place(rank_), request_.send, request_.slice_bytes);
  }
}

void MpiFlight::start_broadcast() {
  if (rank_ != request_.signature.root) return receive(request_.recv, request_.slice_bytes, request_.signature.root);
  each_peer([&](int peer) { send(request_.send, request_.slice_bytes, peer, kMessageBytes); });
}

void MpiFlight::start_agreement() {
  auto* const words = reinterpret_cast<std::byte*>(words_.data());
  if (request_.slice_bytes == 0) return;
  std::memcpy(words + static_cast<std::size_t>(rank_) * request_.slice_bytes, request_.send, request_.slice_bytes);
  each_peer([&](int peer) {
    receive(words + static_cast<std::size_t>(peer) * request_.slice_bytes, request_.slice_bytes, peer);
    send(words + static_cast<std::size_t>(rank_) * request_.slice_bytes, request_.slice_bytes, peer, kMessageBytes);
  });
}

void MpiFlight::start_reduction() {
  stage_ = Stage::reduction;
  each_peer([&](int peer) {
    const Chunk theirs = chunk(peer);
    send(request_.send + theirs.begin * element_bytes_, theirs.numel * element_bytes_, peer, MpiStaging::kPieceBytes);
  });
  pieces_ = (chunk(rank_).numel * element_bytes_ + MpiStaging::kPieceBytes - 1) / MpiStaging::kPieceBytes;
  receive_piece(0);
  receive_piece(1);
}

bool MpiFlight::reduce() {
  while (pieces_summed_ < pieces_ && arriving_[pieces_summed_ % 2].test(progressed_)) {
    sum_piece(pieces_summed_);
    receive_piece(pieces_summed_ + 2);  // Into the place of the one just summed.
    ++pieces_summed_;
  }
  return pieces_summed_ == pieces_ && requests_.test(progressed_);
}

void MpiFlight::receive_piece(std::size_t index) {
  if (index >= pieces_) return;
  each_peer([&](int peer) {
    arriving_[index % 2].receive(staging_->piece(index, peer), piece(index).numel, group_->world_rank(peer),
                                 MpiSet::data_tag(request_.lane), set_->comm());
  });
}

void MpiFlight::sum_piece(std::size_t index) {
  const Chunk mine = chunk(rank_);
  const Chunk part = piece(index);
  for (int rank = 0; rank < size_; ++rank) sources_[static_cast<std::size_t>(rank)] = staging_->piece(index, rank);
  sources_[static_cast<std::size_t>(rank_)] = request_.send + mine.begin * element_bytes_ + part.begin;
  const std::size_t place = request_.signature.kind == CollectiveKind::all_reduce ? mine.begin * element_bytes_ : 0;
  sum_in_rank_order(request_.signature.dtype, sources_, request_.recv + place + part.begin,
                    part.numel / element_bytes_);
}

// Only once all that was sent of these chunks before they were summed has left: their places are overwritten.
void MpiFlight::start_exchange_of_chunks() {
  const Chunk mine = chunk(rank_);
  each_peer([&](int peer) {
    const Chunk theirs = chunk(peer);
    receive(request_.recv + theirs.begin * element_bytes_, theirs.numel * element_bytes_, peer);
    send(request_.recv + mine.begin * element_bytes_, mine.numel * element_bytes_, peer, kMessageBytes);
  });
}

void MpiFlight::finish() noexcept {
  const auto count = static_cast<std::size_t>(request_.signature.numel);
  auto* const result = reinterpret_cast<std::uint64_t*>(request_.recv);
  for (std::size_t i = 0; i < words_.size(); ++i) result[i % count] = std::max(result[i % count], words_[i]);
}

void MpiFlight::check_deadline() {
  if (std::chrono::steady_clock::now() - since_ <= set_->deadline()) return;
  std::string missing;
  if (stage_ == Stage::signatures) {
    std::size_t index = 0;  // Of the receive from a peer: the requests are made in pairs.
    each_peer([&](int peer) {
      if (requests_.pending(index))
        missing += fmt::format("{}rank {}", missing.empty() ? "" : ", ", group_->world_rank(peer));
      index += 2;
    });
  } else {
    missing = "data of peers that had arrived";
  }
  fail(Failure::Kind::deadline, describe_absence({request_.lane, group_->world_rank(), request_.signature,
                                                  set_->deadline(), std::move(missing), stage_ != Stage::signatures}));
}

void MpiFlight::fail(Failure::Kind kind, std::string text) {
  const Failure failure{kind, std::move(text), request_.lane, request_.signature.sequence};
  set_->fail(failure);
  raise_own(failure);
}

void MpiFlight::give_up() noexcept {
  bool in_use = requests_.abandon();
  for (MpiRequests& arriving : arriving_) in_use = arriving.abandon() || in_use;
  if (in_use) set_->runtime().abandon(shared_from_this());
}

void MpiFlight::send(const std::byte* data, std::size_t bytes, int peer, std::size_t message_bytes) {
  for (std::size_t begin = 0; begin < bytes; begin += message_bytes) {
    requests_.send(data + begin, std::min(bytes - begin, message_bytes), group_->world_rank(peer),
                   MpiSet::data_tag(request_.lane), set_->comm());
  }
}

void MpiFlight::receive(std::byte* data, std::size_t bytes, int peer) {
  for (std::size_t begin = 0; begin < bytes; begin += kMessageBytes) {
    requests_.receive(data + begin, std::min(bytes - begin, kMessageBytes), group_->world_rank(peer),
                      MpiSet::data_tag(request_.lane), set_->comm());
  }
}

template <class Visit>
void MpiFlight::each_peer(const Visit& visit) const {
  for (int step = 1; step < size_; ++step) visit((rank_ + step) % size_);
}

Chunk MpiFlight::chunk(int rank) const noexcept {
  const auto numel = static_cast<std::size_t>(request_.signature.numel);
  if (request_.signature.kind == CollectiveKind::all_reduce) return chunk_of(numel, rank, size_);
  return {static_cast<std::size_t>(rank) * numel, numel};
}

Chunk MpiFlight::piece(std::size_t index) const noexcept {
  const std::size_t begin = index * MpiStaging::kPieceBytes;
  return {begin, std::min(chunk(rank_).numel * element_bytes_ - begin, MpiStaging::kPieceBytes)};
}

}  // namespace headroom::detail
