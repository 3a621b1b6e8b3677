#pragma once

#include <headroom/communicator.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace headroom::testing {

/// One rank of a test, and a way for its ranks to meet that uses no communicator.
struct Rank {
  Job& job;
  std::function<void()> meet;
};

/// Runs `body` once a rank, in every way that the program's launcher knows: threads of this process with each executor
/// and several seeds, or this process as one rank of mpirun. `world`: ignored under mpirun.
void launch(int world, const CommunicatorOptions& options, const std::function<void(Rank&)>& body);

/// Parameter: the world size.
class LaunchedTest : public ::testing::TestWithParam<int> {
 protected:
  static void run(const std::function<void(Rank&)>& body) { run(CommunicatorOptions{}, body); }
  static void run(const CommunicatorOptions& options, const std::function<void(Rank&)>& body) {
    launch(GetParam(), options, body);
  }
};

class CollectiveContract : public LaunchedTest {};
class CollectiveFailure : public LaunchedTest {};

}  // namespace headroom::testing
