#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <iostream>
#include <optional>

#include "shard/launched.hpp"
#include "shard/world.hpp"

namespace headroom::test {

namespace {
/// The process's job: made by main, since MPI starts and ends once a process.
std::optional<Job>& process_job() {
  static std::optional<Job> job;
  return job;
}
}  // namespace

std::vector<int> launched_worlds() { return {process_job()->world()}; }

void launch(int /*world*/, const std::function<void(Job&)>& body) { body(*process_job()); }

}  // namespace headroom::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    headroom::test::process_job() = headroom::Job::from_environment({}, {.deadline = headroom::test::kDeadline});
    std::array<std::uint64_t, 1> verdict{static_cast<std::uint64_t>(RUN_ALL_TESTS())};
    headroom::test::process_job()->communicators().control->agree(verdict);
    headroom::test::process_job().reset();
    return static_cast<int>(verdict[0]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
