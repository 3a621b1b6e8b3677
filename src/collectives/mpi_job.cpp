#include "collectives/job.hpp"
#include "collectives/mpi_communicator.hpp"
#include "runtime/core/backend.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace headroom {
namespace {

using detail::MpiBackoff;
using detail::MpiCommunicator;
using detail::MpiRuntime;
using detail::MpiSet;

struct MpiJob final : Job::State {
  MpiJob(const HostOptions& host, const CommunicatorOptions& options_, std::shared_ptr<MpiRuntime> mpi)
      : State(Device::host(detail::host_of_rank(host, mpi->rank())), mpi->rank(), mpi->size(), options_),
        runtime(std::move(mpi)) {}

  [[nodiscard]] const char* launcher() const noexcept override { return "mpi"; }

  [[nodiscard]] detail::CommunicatorFactory join_set(std::chrono::milliseconds deadline) override {
    return [here = device, set = std::make_shared<MpiSet>(runtime, duplicate(deadline), deadline)](
               detail::CommunicatorName name, detail::SharedGroup group) {
      return std::make_shared<MpiCommunicator>(here, set, std::move(group), name);
    };
  }

  void abort(int exit_code, const char* reason) noexcept override {
    spdlog::error("rank {} ends the job with code {}: {}", rank, exit_code, reason);
    spdlog::default_logger_raw()->flush();
    MPI_Abort(runtime->world(), exit_code);
  }

  /// A duplicate of the world, or an error within the deadline; meanwhile this rank's streams go on.
  [[nodiscard]] MPI_Comm duplicate(std::chrono::milliseconds deadline) const {
    auto comm = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    detail::check_mpi(MPI_Comm_idup(runtime->world(), comm.get(), &request), "MPI_Comm_idup");
    MpiBackoff backoff;
    const auto since = std::chrono::steady_clock::now();
    const auto poll = [&] {
      int flag = 0;
      detail::check_mpi(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
      if (flag != 0) return Progress::done;
      if (std::chrono::steady_clock::now() - since > deadline) {
        runtime->abandon(comm);
        throw DeadlineExceeded(
            fmt::format("communicators() passed its deadline of {} ms (rank {}): expected all {} ranks "
                        "to call it. Every rank must make the same number of sets",
                        deadline.count(), rank, world));
      }
      return Progress::blocked;
    };
    device.backend().host_wait({.poll = poll, .pause = [&](std::chrono::microseconds most) { backoff.pause(most); }});
    return *comm;
  }

  std::shared_ptr<MpiRuntime> runtime;
};

}  // namespace

std::shared_ptr<Job::State> detail::make_mpi_job(const HostOptions& host, const CommunicatorOptions& options) {
  return std::make_shared<MpiJob>(host, options, std::make_shared<MpiRuntime>());
}

}  // namespace headroom
