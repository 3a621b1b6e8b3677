// What a run writes beside its report.

#include "report/trace_file.hpp"

#include <headroom/allocator.hpp>
#include <headroom/recording.hpp>
#include <headroom/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace headroom::bench {
namespace {

TEST(TraceFile, TwoStreams_GiveOperationsCountersNamesAndFlows) {
  const Device device = Device::host();
  CachingAllocator memory(device);
  {
    Stream compute(device);
    Stream gather(device, {StreamRole::gather, "gather"});
    Buffer buffer = memory.allocate({.bytes = 4096, .category = Category::activation, .name = "x"}, compute);
    Event open;
    std::atomic<bool> waited{false};
    Operation first;
    first.name = "first";
    first.poll = [&waited] { return waited ? Progress::done : Progress::blocked; };
    gather.ref().enqueue(std::move(first));
    open.record(gather);
    compute.ref().wait(open);
    Operation second;
    second.name = "second \"quoted\"";
    second.host = [] {};
    compute.ref().enqueue(std::move(second));
    waited = true;
    compute.ref().synchronize();
  }
  const std::string recording = ::testing::TempDir() + "two_streams.events", file = recording + ".json";
  RecordingInfo info = recording_info(memory);
  info.rank = 3;
  info.world = 4;
  RecordingWriter(recording, info).finish(memory, device.trace());
  write_trace({recording}, file);
  const nlohmann::json trace = nlohmann::json::parse(std::ifstream(file));
  std::set<std::string> phases;
  std::set<std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 3);
    phases.insert(event.at("ph").get<std::string>());
    names.insert(event.at("name").get<std::string>());
  }
  for (const char* phase : {"X", "C", "M"}) EXPECT_TRUE(phases.count(phase)) << phase;
  EXPECT_EQ(phases.count("s"), phases.count("f"));
  EXPECT_TRUE(names.count("first") && names.count("second \"quoted\""));
}

}  // namespace
}  // namespace headroom::bench
