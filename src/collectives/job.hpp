#pragma once

#include "collectives/host_communicator.hpp"

#include <headroom/communicator.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace headroom {

namespace detail {

/// Makes communicators of one set: each over a group of ranks, on lanes of its own.
using CommunicatorFactory = std::function<std::shared_ptr<HostCommunicator>(CommunicatorName, SharedGroup)>;

}  // namespace detail

/// How a rank was launched: by mpirun, by run_ranks, or not at all.
struct Job::State {
  State(Device device_, int rank_, int world_, const CommunicatorOptions& options_)
      : device(std::move(device_)), rank(rank_), world(world_), options(options_) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;
  [[nodiscard]] virtual const char* launcher() const noexcept = 0;
  /// Where this rank meets its peers in its next set.
  [[nodiscard]] virtual detail::CommunicatorFactory join_set(std::chrono::milliseconds deadline) = 0;
  virtual void abort(int exit_code, const char* reason) noexcept = 0;

  Device device;
  int rank, world;
  CommunicatorOptions options;
};

namespace detail {

/// Ranks must not draw the same order of work.
[[nodiscard]] HostOptions host_of_rank(HostOptions host, int rank) noexcept;

[[nodiscard]] std::shared_ptr<Job::State> make_lone_job(const HostOptions& host, const CommunicatorOptions& options);
[[nodiscard]] std::shared_ptr<Job::State> make_mpi_job(const HostOptions& host, const CommunicatorOptions& options);

}  // namespace detail
}  // namespace headroom
