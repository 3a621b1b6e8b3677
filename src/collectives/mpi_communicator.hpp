#pragma once

#include "collectives/host_communicator.hpp"
#include "collectives/mpi_flight.hpp"

#include <array>
#include <memory>

namespace headroom::detail {

/// Ranks are processes. Buffers of collectives that an error ended must stay alive until the process ends: MPI cannot
/// take back a transfer that has begun.
class MpiCommunicator final : public HostCommunicator {
 public:
  MpiCommunicator(Device device, std::shared_ptr<MpiSet> set, SharedGroup group, CommunicatorName name);
  void abort(const char* reason) noexcept override;
  [[nodiscard]] std::span<const std::byte> staging() const noexcept override { return staging_->bytes(); }

 private:
  [[nodiscard]] std::shared_ptr<Flight> make_flight(const CollectiveRequest& request) override;

  std::shared_ptr<MpiSet> set_;
  std::shared_ptr<MpiStaging> staging_;
};

}  // namespace headroom::detail
