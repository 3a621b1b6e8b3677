#include "collectives/launch.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace headroom::testing {
INSTANTIATE_TEST_SUITE_P(Mpi, CollectiveFailure, ::testing::Values(0));
}

// Process groups fail here on purpose, after which a Job leaves MPI as it is: so this program owns MPI itself.
int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  ::testing::InitGoogleTest(&argc, argv);
  int verdict = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &verdict, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return verdict;
}
