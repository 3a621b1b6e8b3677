#include "memory/recording_files.hpp"

#include <headroom/buffer.hpp>
#include <headroom/error.hpp>
#include <headroom/recording.hpp>
#include <headroom/stream.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace headroom {
namespace {

/// Two streams, views, a retag, a wait: what a step does, in small.
struct SmallRun {
  Device device = Device::host();
  CachingAllocator memory;
  Stream compute{device}, gather{device, {StreamRole::gather, "gather"}};

  explicit SmallRun(std::size_t event_capacity = 1U << 10) : memory(device, {.event_capacity = event_capacity}) {}

  void work(StreamRef stream, const char* name) const {
    Operation operation;
    operation.name = name;
    operation.unit = 0;
    operation.host = [] {};
    stream.enqueue(std::move(operation));
  }
  void step(std::int64_t number) {
    memory.mark_step(number);
    memory.mark_unit(0, "forward", "visit");
    Buffer full = memory.allocate({.bytes = 5000, .category = Category::activation, .name = "full", .unit = 0}, gather);
    work(gather, "all_gather");
    compute.ref().wait(gather, gather.ref().issued());
    Buffer scratch = memory.allocate({.bytes = 100, .category = Category::workspace, .name = "scratch"}, compute);
    work(compute, "forward");
    full.record_use(compute);
    compute.ref().synchronize();
    gather.ref().synchronize();
  }
};

RecordingInfo small_info(const SmallRun& run) {
  RecordingInfo info = recording_info(run.memory);
  info.rank = 1;
  info.world = 2;
  info.units = {"embedding"};
  return info;
}

std::string record_small_run(const TemporaryFile& file) {
  SmallRun run;
  RecordingWriter writer(file.path(), small_info(run));
  writer.note("config", "{\"steps\": 3}");
  for (int step = 0; step < 3; ++step) {
    run.step(step);
    writer.drain(run.memory, run.device.trace());
  }
  writer.finish(run.memory, run.device.trace());
  return file.bytes();
}

TEST(Recording, ReadBack_IsWhatWasLogged) {
  const TemporaryFile file;
  SmallRun run;
  RecordingWriter writer(file.path(), small_info(run));
  writer.note("schedule", "forward 0\n");
  std::vector<OperationRecord> operations;
  for (int step = 0; step < 3; ++step) {
    run.step(step);
    for (const OperationRecord& each : run.device.trace().operations()) operations.push_back(each);
    writer.drain(run.memory, run.device.trace());
    EXPECT_TRUE(run.device.trace().operations().empty());
  }
  writer.finish(run.memory, run.device.trace());

  const Recording back = read_recording(file.path());
  EXPECT_EQ(back.info.rank, 1U);
  EXPECT_EQ(back.info.world, 2U);
  EXPECT_EQ(back.info.units, std::vector<std::string>{"embedding"});
  EXPECT_EQ(back.info.layout.region_base, run.memory.layout().region_base);
  EXPECT_GT(back.info.steady_ns, 0);
  EXPECT_GT(back.info.epoch_ns, std::int64_t{1'500'000'000} * 1'000'000'000);
  EXPECT_EQ(back.notes.at("schedule"), "forward 0\n");
  EXPECT_EQ(back.names, run.memory.names());
  const std::vector<AllocatorEvent> events = run.memory.events();
  ASSERT_EQ(back.events.size(), events.size());
  EXPECT_EQ(std::memcmp(back.events.data(), events.data(), events.size() * sizeof(AllocatorEvent)), 0);
  ASSERT_EQ(back.streams.size(), 2U);
  EXPECT_EQ(back.streams[1].name, "gather");
  EXPECT_EQ(back.streams[1].role, StreamRole::gather);
  ASSERT_EQ(back.operations.size(), operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(back.operation_names.at(back.operations[i].name), operations[i].name);
    EXPECT_EQ(back.operations[i].kind, operations[i].kind);
    EXPECT_EQ(back.operations[i].start_ns, operations[i].start_ns);
    EXPECT_EQ(back.operations[i].producer_ticket, operations[i].producer_ticket);
  }
  EXPECT_EQ(back.statistics, named_statistics(run.memory.statistics()));
  EXPECT_EQ(back.lost_events, 0U);
}

TEST(Recording, CutAtAnyLength_IsRefused) {
  const TemporaryFile file;
  const std::string bytes = record_small_run(file);
  EXPECT_EQ(fault_of(file), "");
  for (std::size_t length = bytes.size(); length-- > 0;) {
    file.cut(length);
    ASSERT_NE(fault_of(file), "") << length << " of " << bytes.size();
  }
  file.write(bytes + '\0');
  EXPECT_NE(fault_of(file).find("the end of the file"), std::string::npos);
}

/// All bits of the first chunks, one of each byte of the rest.
TEST(Recording, BitFlipped_IsRefused) {
  constexpr std::size_t kAllBitsOf = 256;
  const TemporaryFile file;
  const std::string bytes = record_small_run(file);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (std::size_t bit = at < kAllBitsOf ? 0 : at % 8; bit < 8; bit += at < kAllBitsOf ? 1 : 8) {
      file.put(at, static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit)));
      ASSERT_NE(fault_of(file), "") << "bit " << bit << " of byte " << at;
    }
    file.put(at, bytes[at]);
  }
  EXPECT_EQ(fault_of(file), "");
}

TEST(Recording, OfALogThatDroppedEvents_NamesTheHole) {
  const TemporaryFile file;
  SmallRun run(8);
  RecordingWriter writer(file.path(), small_info(run));
  writer.drain(run.memory, run.device.trace());
  run.step(0);
  writer.finish(run.memory, run.device.trace());
  const std::uint64_t lost = run.memory.dropped_events();
  ASSERT_GT(lost, 0U);
  EXPECT_NE(fault_of(file).find("hole: the log dropped events 0 to " + std::to_string(lost - 1)), std::string::npos);
  const Recording rest = read_recording(file.path(), Holes::allowed);
  EXPECT_EQ(rest.lost_events, lost);
  EXPECT_EQ(rest.events.size(), 8U);
  EXPECT_FALSE(rest.operations.empty());
}

TEST(Recording, WithoutItsEnd_IsRefused) {
  const TemporaryFile file;
  SmallRun run;
  {
    RecordingWriter writer(file.path(), small_info(run));
    run.step(0);
    writer.drain(run.memory, run.device.trace());
  }
  EXPECT_NE(fault_of(file).find("the end of the file"), std::string::npos);
}

TEST(Recording, ThatCannotBeWritten_SaysWhich) {
  SmallRun run;
  EXPECT_THROW(RecordingWriter("/nowhere/x", small_info(run)), InputOutputError);
  RecordingWriter full("/dev/full", small_info(run));
  try {
    full.finish(run.memory, run.device.trace());
    FAIL();
  } catch (const InputOutputError& error) {
    EXPECT_EQ(std::string(error.what()).find("/dev/full: expected to "), 0U) << error.what();
  }
  const TemporaryFile file;
  RecordingWriter finished(file.path(), small_info(run));
  finished.finish(run.memory, run.device.trace());
  EXPECT_THROW(finished.note("late", ""), std::logic_error);
}

TEST(Recording, OtherFiles_AreRefused) {
  EXPECT_THROW(static_cast<void>(read_recording("/nowhere/x")), InvalidInput);
  EXPECT_THROW(static_cast<void>(read_recording("/")), InvalidInput);
  const TemporaryFile file;
  file.write("");
  EXPECT_NE(fault_of(file).find("the end of the file after 0 bytes at offset 0"), std::string::npos);
  file.write(std::string(10'000'000, '\0'));
  EXPECT_NE(fault_of(file).find("begins with HRMEVENT, found another at offset 0"), std::string::npos);
}

}  // namespace
}  // namespace headroom
