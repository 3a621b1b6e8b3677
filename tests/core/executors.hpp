#pragma once

#include <gtest/gtest.h>
#include <headroom/device.hpp>
#include <headroom/stream.hpp>
#include <headroom/trace.hpp>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace headroom::test {

/// A way to make devices; the stream contract is tested over each.
struct ExecutorCase {
  std::string name;
  HostOptions options;
};

/// How GoogleTest names a parameter.
inline void PrintTo(const ExecutorCase& executor, std::ostream* out) { *out << executor.name; }

inline Device make_device(const ExecutorCase& executor) { return Device::host(executor.options); }

inline auto every_executor() {
  std::vector<ExecutorCase> cases{{"threads", {Executor::threads, 1}}};
  for (const std::uint64_t seed : {1U, 2U, 3U, 7U, 11U, 19U}) {
    cases.push_back({"seeded" + std::to_string(seed), {Executor::seeded, seed}});
  }
  return ::testing::ValuesIn(cases);
}

inline std::string case_name(const ::testing::TestParamInfo<ExecutorCase>& info) { return info.param.name; }

class StreamTest : public ::testing::TestWithParam<ExecutorCase> {
 protected:
  Device device_ = make_device(GetParam());
};

inline Operation host_operation(std::function<void()> body, const char* name = "test") {
  Operation operation;
  operation.name = name;
  operation.host = std::move(body);
  return operation;
}

inline Operation poll_operation(std::function<Progress()> body, const char* name = "poll") {
  Operation operation;
  operation.name = name;
  operation.poll = std::move(body);
  return operation;
}

}  // namespace headroom::test
