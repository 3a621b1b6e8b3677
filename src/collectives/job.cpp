#include "collectives/job.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace headroom {

Job Job::from_environment(const HostOptions& host, const CommunicatorOptions& options) {
  return Job(launched_by_mpi() ? detail::make_mpi_job(host, options) : detail::make_lone_job(host, options));
}

int Job::rank() const noexcept { return state_->rank; }
int Job::world() const noexcept { return state_->world; }
Device Job::device() const noexcept { return state_->device; }
const char* Job::launcher() const noexcept { return state_->launcher(); }

Communicators Job::communicators(const GroupOptions& groups) const {
  using detail::CommunicatorName;
  const int size = world(), self = rank();
  const int shard_ranks = detail::shard_ranks_of(groups, size);  // Refuses before anything is communicated.
  const detail::CommunicatorFactory make = state_->join_set(groups.deadline.value_or(state_->options.deadline));
  const auto control = make(CommunicatorName::control, detail::make_group(0, 1, size, self));
  control->compare({shard_ranks, groups.one_for_both, groups.deadline});
  const detail::SharedGroup shard = detail::make_group(self - self % shard_ranks, 1, shard_ranks, self);
  const detail::SharedGroup owners = detail::make_group(self % shard_ranks, shard_ranks, size / shard_ranks, self);
  const auto gather = make(CommunicatorName::gather, shard);
  return {gather, groups.one_for_both ? gather : make(CommunicatorName::reduce, shard), control,
          make(CommunicatorName::replicate, owners)};
}

void Job::abort(int exit_code, const char* reason) const noexcept { state_->abort(exit_code, reason); }

bool launched_by_mpi() noexcept {
  // Open MPI, MPICH and its relatives, MVAPICH2.
  constexpr std::array<const char*, 3> kNames{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
  return std::any_of(kNames.begin(), kNames.end(), [](const char* name) { return std::getenv(name) != nullptr; });
}

HostOptions detail::host_of_rank(HostOptions host, int rank) noexcept {
  host.seed += 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(rank);
  return host;
}

}  // namespace headroom
