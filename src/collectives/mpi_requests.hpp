#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace headroom::detail {

/// MPI cannot sleep until a message comes: whoever waits must poll. Yields at first, because most messages come within
/// microseconds; then sleeps, longer and longer, so that a rank that waits for a slow peer leaves the core to threads
/// that compute. Bounded, so that a message is never seen much later than kLongest.
class MpiBackoff {
 public:
  void progressed() noexcept { idle_ = 0; }
  void pause(std::chrono::microseconds most) noexcept;

 private:
  static constexpr int kYields = 32;
  static constexpr std::chrono::microseconds kShortest{10}, kLongest{500};
  int idle_ = 0;
};

/// Point-to-point requests that complete in any order.
class MpiRequests {
 public:
  void send(const void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm);
  void receive(void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm);
  /// Completes what can be completed now; true where all is. Sets `progressed` if something was. Throws:
  /// CommunicatorError.
  [[nodiscard]] bool test(bool& progressed);
  /// Whether the request made `index`-th since all were last complete is under way.
  [[nodiscard]] bool pending(std::size_t index) const noexcept;
  /// Cancels the receives that no message has met and forgets the rest. True where MPI may still use the buffers.
  [[nodiscard]] bool abandon() noexcept;
  void reserve(std::size_t requests);

 private:
  std::vector<MPI_Request> requests_;
  std::vector<bool> is_receive_;
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;
  std::size_t under_way_ = 0;
};

/// Where a reduction receives its peers' pieces: two a peer, so that one is summed while the next arrives. One a
/// communicator, because one operation of its stream is under way at a time; pages that are never used cost nothing.
class MpiStaging {
 public:
  static constexpr std::size_t kPieceBytes = 256U << 10U;
  explicit MpiStaging(int size);
  [[nodiscard]] std::byte* piece(std::size_t index, int rank) const noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), 2 * size_ * kPieceBytes}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace headroom::detail
