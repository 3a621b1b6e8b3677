/// A trainer with a bug, as a process: misbehave NAME CULPRIT, under mpirun or as three threads. Its exit code and its
/// one line of error are the program's, so that what a launcher sees is tested too.
#include <headroom/communicator.hpp>

#include <algorithm>
#include <iostream>
#include <string>

#include "options/exit_codes.hpp"
#include "shard/misbehaviour.hpp"

int main(int argc, char** argv) {
  using namespace headroom;
  if (argc != 3) {
    std::cerr << "usage: misbehave NAME CULPRIT\n";
    return 1;
  }
  const auto all = test::misbehaviours();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const test::Misbehaviour& one) { return one.name == argv[1]; });
  if (found == all.end()) {
    std::cerr << "no misbehaviour " << argv[1] << '\n';
    return 1;
  }
  const int culprit = std::stoi(argv[2]);
  try {
    if (launched_by_mpi()) {
      Job job = Job::from_environment();
      try {
        found->act(job, culprit);
      } catch (const std::exception& error) {
        if (job.rank() == 0) {
          bench::print_error(bench::describe(error, 0));
        }
        return bench::exit_code_of(error);
      }
    } else {
      run_ranks(3, {}, {}, [&](Job& job) { found->act(job, culprit); });
    }
  } catch (const std::exception& error) {
    bench::print_error(bench::describe(error, 0));
    return bench::exit_code_of(error);
  }
  return 0;
}
