#pragma once

#include "collectives/collective.hpp"
#include "collectives/rank_group.hpp"

#include <headroom/communicator.hpp>
#include <headroom/device.hpp>

#include <atomic>
#include <memory>

namespace headroom::detail {

/// What the communicators of the host share: checks, signatures, enqueueing, counting. A backend makes Flights.
class HostCommunicator : public Communicator {
 public:
  [[nodiscard]] int rank() const noexcept final { return group_->rank; }
  [[nodiscard]] int size() const noexcept final { return group_->size(); }
  void all_gather(TensorView send, TensorView recv, StreamRef stream, int unit) final;
  void reduce_scatter(TensorView send, TensorView recv, StreamRef stream, int unit) final;
  void all_reduce(TensorView buffer, TensorView scratch, StreamRef stream, int unit) final;
  void broadcast(TensorView buffer, int root, StreamRef stream) final;
  [[nodiscard]] std::size_t all_reduce_scratch_bytes(std::size_t bytes) const noexcept final;
  void agree(std::span<std::uint64_t> words) final;
  void share(std::span<std::byte> bytes, int root) final;
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept final { return counters_->sent; }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept final { return counters_->received; }

  /// Before anything else: are these the options of all ranks? Blocks. Throws: CollectiveMismatch, DeadlineExceeded.
  void compare(const GroupOptions& options);

 protected:
  HostCommunicator(Device device, SharedGroup group, CommunicatorName name);
  [[nodiscard]] const SharedGroup& group() const noexcept { return group_; }
  [[nodiscard]] virtual std::shared_ptr<Flight> make_flight(const CollectiveRequest& request) = 0;

 private:
  struct Counters {
    std::atomic<std::uint64_t> sent{0}, received{0};
  };

  void enqueue(CollectiveRequest request, StreamRef stream);
  void run_blocking(CollectiveRequest request);
  void wait_for(CollectiveRequest request);
  [[nodiscard]] std::function<Progress()> counted_poll(const CollectiveRequest& request,
                                                       const std::shared_ptr<Flight>& flight) const;

  Device device_;
  SharedGroup group_;
  CommunicatorName name_;
  std::uint64_t stream_operations_ = 0, host_operations_ = 0;
  std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();  // Operations may outlive the communicator.
};

}  // namespace headroom::detail
