// What a run writes beside its report.
#include "report/event_file.hpp"
#include "report/trace_file.hpp"

#include <headroom/allocator.hpp>
#include <headroom/error.hpp>
#include <headroom/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace headroom::bench {
namespace {

EventFile some_events() {
  EventFile file;
  file.rank = 1;
  file.world = 2;
  file.names = {"qkv", ""};
  file.units = {"embedding"};
  for (std::uint64_t number = 0; number < 5; ++number) {
    AllocatorEvent event;
    event.number = number;
    event.bytes = 512 * number;
    event.kind = AllocatorEvent::Kind::retag;
    file.events.push_back(event);
  }
  return file;
}

TEST(EventFile, Decoded_IsWhatWasEncoded) {
  const EventFile file = some_events();
  const EventFile back = decode_events(encode_events(file), "test");
  EXPECT_EQ(back.rank, 1U);
  EXPECT_EQ(back.world, 2U);
  EXPECT_EQ(back.names, file.names);
  EXPECT_EQ(back.units, file.units);
  ASSERT_EQ(back.events.size(), file.events.size());
  EXPECT_EQ(std::memcmp(back.events.data(), file.events.data(), file.events.size() * sizeof(AllocatorEvent)), 0);
}

TEST(EventFile, TruncatedOrFlipped_IsRefused) {
  const std::string bytes = encode_events(some_events());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(static_cast<void>(decode_events(bytes.substr(0, length), "test")), InvalidInput) << length;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_THROW(static_cast<void>(decode_events(flipped, "test")), InvalidInput) << at;
  }
}

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
  std::ostringstream text;
  write_trace(text, {3, &device.trace(), &memory, {}});
  const nlohmann::json trace = nlohmann::json::parse(text.str());
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
