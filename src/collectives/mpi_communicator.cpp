#include "collectives/mpi_communicator.hpp"

#include <utility>

namespace headroom::detail {

MpiCommunicator::MpiCommunicator(Device device, std::shared_ptr<MpiGroup> group, int index)
    : HostCommunicator(std::move(device), group->rank(), group->size(), index),
      group_(std::move(group)),
      staging_(std::make_shared<MpiStaging>(group_->size())) {}

void MpiCommunicator::abort(const char* reason) noexcept {
  try {
    group_->fail({Failure::Kind::aborted, reason, {}, 0});
  } catch (...) {
    group_->fail({Failure::Kind::aborted, {}, {}, 0});  // No memory for the reason; that it ended is what counts.
  }
}

std::shared_ptr<Flight> MpiCommunicator::make_flight(const CollectiveRequest& request) {
  return std::make_shared<MpiFlight>(group_, staging_, request);
}

}  // namespace headroom::detail
