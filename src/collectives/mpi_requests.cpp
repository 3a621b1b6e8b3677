#include "collectives/mpi_requests.hpp"

#include "collectives/mpi_runtime.hpp"

#include <sched.h>
#include <algorithm>
#include <ctime>

namespace headroom::detail {

void MpiBackoff::pause(std::chrono::microseconds most) noexcept {
  if (idle_++ < kYields) {
    sched_yield();
    return;
  }
  const int doublings = std::min((idle_ - kYields) / 4, 6);
  const auto sleep = std::min({kShortest * (1 << doublings), kLongest, most});
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(sleep.count() * 1000)};
  nanosleep(&time, nullptr);  // Returns early on a signal, which is as good.
}

void MpiRequests::send(const void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, &request), "MPI_Isend");
  requests_.push_back(request);
  is_receive_.push_back(false);
  ++under_way_;
}

void MpiRequests::receive(void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, &request), "MPI_Irecv");
  requests_.push_back(request);
  is_receive_.push_back(true);
  ++under_way_;
}

bool MpiRequests::test(bool& progressed) {
  if (under_way_ > 0) {
    completed_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), statuses_.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (int i = 0; i < count; ++i) check_mpi(statuses_[static_cast<std::size_t>(i)].MPI_ERROR, "MPI_Testsome");
    }
    check_mpi(code, "MPI_Testsome");
    progressed = progressed || count > 0;
    under_way_ -= static_cast<std::size_t>(count);
  }
  if (under_way_ > 0) return false;
  requests_.clear();
  is_receive_.clear();
  return true;
}

bool MpiRequests::pending(std::size_t index) const noexcept {
  return index < requests_.size() && requests_[index] != MPI_REQUEST_NULL;
}

bool MpiRequests::abandon() noexcept {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (is_receive_[i]) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  return under_way_ > 0;
}

void MpiRequests::reserve(std::size_t requests) {
  requests_.reserve(requests);
  is_receive_.reserve(requests);
  completed_.reserve(requests);
  statuses_.reserve(requests);
}

MpiStaging::MpiStaging(int size)
    : size_(static_cast<std::size_t>(size)),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(2 * size_ * kPieceBytes)) {}

std::byte* MpiStaging::piece(std::size_t index, int rank) const noexcept {
  return bytes_.get() + (index % 2 * size_ + static_cast<std::size_t>(rank)) * kPieceBytes;
}

}  // namespace headroom::detail
