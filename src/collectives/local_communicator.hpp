#pragma once

#include "collectives/host_communicator.hpp"
#include "collectives/rendezvous.hpp"

#include <memory>

namespace headroom::detail {

/// Ranks are threads of one process; each byte moves once, straight from the peer's buffer.
class LocalCommunicator final : public HostCommunicator {
 public:
  LocalCommunicator(Device device, std::shared_ptr<Rendezvous> rendezvous, SharedGroup group, CommunicatorName name);
  void abort(const char* reason) noexcept override { rendezvous_->abort(reason); }

 private:
  [[nodiscard]] std::shared_ptr<Flight> make_flight(const CollectiveRequest& request) override;

  std::shared_ptr<Rendezvous> rendezvous_;
};

}  // namespace headroom::detail
