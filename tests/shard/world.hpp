#pragma once

#include <headroom/communicator.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::test {

inline constexpr std::chrono::milliseconds kDeadline{20'000};

/// What each rank returned, in rank order.
template <class Result>
std::vector<Result> on_ranks(int world, const HostOptions& host, const std::function<Result(Job&)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(world));
  run_ranks(world, host, {.deadline = kDeadline},
            [&](Job& job) { results[static_cast<std::size_t>(job.rank())] = body(job); });
  return results;
}

}  // namespace headroom::test
