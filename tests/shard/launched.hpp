#pragma once

#include <headroom/communicator.hpp>

#include <functional>
#include <vector>

/// How the ranks of a suite are launched: linked from launched_threads.cpp, or from launched_mpi.cpp.
namespace headroom::test {

[[nodiscard]] std::vector<int> launched_worlds();
/// Runs `body` once a rank. `world`: one of launched_worlds().
void launch(int world, const std::function<void(Job&)>& body);

}  // namespace headroom::test
