#include "collectives/mpi_set.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace headroom::detail {

MpiSet::MpiSet(std::shared_ptr<MpiRuntime> runtime, MPI_Comm comm, std::chrono::milliseconds deadline)
    : runtime_(std::move(runtime)), comm_(comm), deadline_(deadline) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Irecv(&heard_, sizeof heard_, MPI_BYTE, MPI_ANY_SOURCE, kAlarmTag, comm_, &listening_), "MPI_Irecv");
}

// A set that has failed is kept by the runtime, so this one has nothing under way but its listening.
MpiSet::~MpiSet() {
  if (ended_) return;
  MPI_Cancel(&listening_);
  MPI_Wait(&listening_, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm_);
}

void MpiSet::check(const CollectiveRequest& own, bool posted) {
  listen();
  if (!ended_) return;
  const std::lock_guard lock(mutex_);
  if (posted && failure_.lane == own.lane && failure_.sequence == own.signature.sequence) {
    raise_own(failure_);
  }
  raise_consequence(failure_);
}

void MpiSet::listen() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || ended_) return;  // Another stream's thread listens.
  int flag = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&listening_, &flag, &status), "MPI_Test");
  if (flag == 0) return;
  heard_.text.back() = '\0';
  failure_ = {heard_.kind, fmt::format("rank {} reports: {}", status.MPI_SOURCE, heard_.text.data()), heard_.lane,
              heard_.sequence};
  ended_ = true;
  runtime_->abandon(shared_from_this());
}

void MpiSet::fail(const Failure& failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  failure_.kind = failure.kind;
  try {
    failure_ = failure;
  } catch (...) {
    failure_.text.clear();  // No memory for the reason; that it ended is what counts.
  }
  ended_ = true;
  runtime_->abandon(shared_from_this());
  ring();
}

void MpiSet::ring() noexcept {
  rung_.kind = failure_.kind;
  rung_.lane = failure_.lane;
  rung_.sequence = failure_.sequence;
  std::copy_n(failure_.text.begin(), std::min(failure_.text.size(), rung_.text.size() - 1), rung_.text.begin());
  for (int peer = 0; peer < runtime_->size(); ++peer) {
    if (peer == runtime_->rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    // Its result cannot matter: this set is lost either way, and a peer that does not hear has its own deadline.
    if (MPI_Isend(&rung_, sizeof rung_, MPI_BYTE, peer, kAlarmTag, comm_, &request) == MPI_SUCCESS) {
      MPI_Request_free(&request);
    }
  }
}

}  // namespace headroom::detail
