#include "collectives/launch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <exception>
#include <iostream>

namespace headroom::testing {
INSTANTIATE_TEST_SUITE_P(Mpi, CollectiveContract, ::testing::Values(0));
}

// MPI is initialised, and finalised, by this Job: its being there is what keeps MPI up between two tests.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    const headroom::Job job = headroom::Job::from_environment();
    std::array<std::uint64_t, 1> verdict{static_cast<std::uint64_t>(RUN_ALL_TESTS())};
    job.communicators().control->agree(verdict);
    return static_cast<int>(verdict.front());
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
