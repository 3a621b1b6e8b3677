#pragma once

#include <headroom/communicator.hpp>

#include <memory>
#include <utility>

namespace headroom {

/// How a rank was launched: by mpirun, by run_ranks, or not at all.
struct Job::State {
  State(Device device_, int rank_, int world_) : device(std::move(device_)), rank(rank_), world(world_) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;
  [[nodiscard]] virtual const char* launcher() const noexcept = 0;
  [[nodiscard]] virtual Communicators communicators() = 0;
  virtual void abort(int exit_code, const char* reason) noexcept = 0;

  Device device;
  int rank, world;
};

namespace detail {

/// Ranks must not draw the same order of work.
[[nodiscard]] HostOptions host_of_rank(HostOptions host, int rank) noexcept;

[[nodiscard]] std::shared_ptr<Job::State> make_lone_job(const HostOptions& host, const CommunicatorOptions& options);
[[nodiscard]] std::shared_ptr<Job::State> make_mpi_job(const HostOptions& host, const CommunicatorOptions& options);

}  // namespace detail
}  // namespace headroom
