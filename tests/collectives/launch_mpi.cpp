#include "collectives/launch.hpp"

#include <mpi.h>

#include <string>

namespace headroom::testing {

void launch(int /*world*/, const CommunicatorOptions& options, const std::function<void(Rank&)>& body) {
  for (const Executor executor : {Executor::threads, Executor::seeded}) {
    Job job = Job::from_environment({.executor = executor}, options);
    SCOPED_TRACE("rank " + std::to_string(job.rank()) + " of " + std::to_string(job.world()) +
                 (executor == Executor::threads ? ", threads" : ", seed 1"));
    const Stream first(job.device());
    Rank rank{job, [] { MPI_Barrier(MPI_COMM_WORLD); }};
    body(rank);
  }
}

}  // namespace headroom::testing
