#include "collectives/mpi_communicator.hpp"

#include <utility>

namespace headroom::detail {

MpiCommunicator::MpiCommunicator(Device device, std::shared_ptr<MpiSet> set, SharedGroup group, CommunicatorName name)
    : HostCommunicator(std::move(device), std::move(group), name),
      set_(std::move(set)),
      staging_(std::make_shared<MpiStaging>(size())) {}

void MpiCommunicator::abort(const char* reason) noexcept {
  try {
    set_->fail({Failure::Kind::aborted, reason, {}, 0});
  } catch (...) {
    set_->fail({Failure::Kind::aborted, {}, {}, 0});  // No memory for the reason; that it ended is what counts.
  }
}

std::shared_ptr<Flight> MpiCommunicator::make_flight(const CollectiveRequest& request) {
  return std::make_shared<MpiFlight>(set_, group(), staging_, request);
}

}  // namespace headroom::detail
