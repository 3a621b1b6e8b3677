#pragma once

#include "collectives/mpi_requests.hpp"
#include "collectives/mpi_set.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom::detail {

/// One rank's part in one collective between processes, by point-to-point messages only. Signatures first, and only
/// once all of them agree the data: a peer that is missing or differs never touches the caller's buffers.
class MpiFlight final : public Flight, public std::enable_shared_from_this<MpiFlight> {
 public:
  MpiFlight(std::shared_ptr<MpiSet> set, SharedGroup group, std::shared_ptr<MpiStaging> staging,
            const CollectiveRequest& request);
  [[nodiscard]] Progress poll() override;
  void pause(std::chrono::microseconds most) override { backoff_.pause(most); }

 private:
  /// `exchange`: every message left goes straight from and to its place.
  enum class Stage { start, signatures, reduction, exchange };

  [[nodiscard]] Progress advance();
  void post_signatures();
  void check_signatures();
  void start_data();
  void start_gather();
  void start_broadcast();
  void start_agreement();
  void start_reduction();
  [[nodiscard]] bool reduce();
  void start_exchange_of_chunks();
  void finish() noexcept;
  void check_deadline();
  void give_up() noexcept;
  [[noreturn]] void fail(Failure::Kind kind, std::string text);

  // Peers are ranks of the group.
  void send(const std::byte* data, std::size_t bytes, int peer, std::size_t message_bytes);
  void receive(std::byte* data, std::size_t bytes, int peer);
  void receive_piece(std::size_t index);
  void sum_piece(std::size_t index);
  template <class Visit>
  void each_peer(const Visit& visit) const;
  [[nodiscard]] Chunk chunk(int rank) const noexcept;           ///< Of the buffer that is reduced, in elements.
  [[nodiscard]] Chunk piece(std::size_t index) const noexcept;  ///< Of this rank's chunk, in bytes and from its begin.

  std::shared_ptr<MpiSet> set_;
  SharedGroup group_;
  std::shared_ptr<MpiStaging> staging_;
  CollectiveRequest request_;
  int rank_, size_;  // In the group.
  std::size_t element_bytes_;
  Stage stage_ = Stage::start;
  MpiBackoff backoff_;
  bool progressed_ = false;
  std::chrono::steady_clock::time_point since_{};
  std::vector<Signature> signatures_;  // By rank.
  MpiRequests requests_;
  std::array<MpiRequests, 2> arriving_;  // A reduction's pieces with an even, and an odd, index.
  std::size_t pieces_ = 0, pieces_summed_ = 0;
  std::vector<const std::byte*> sources_;  // By rank.
  std::vector<std::uint64_t> words_;       // An agreement's, of all ranks.
};

}  // namespace headroom::detail
