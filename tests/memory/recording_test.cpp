#include "runtime/memory/recording_format.hpp"

#include <headroom/buffer.hpp>
#include <headroom/error.hpp>
#include <headroom/recording.hpp>
#include <headroom/stream.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace headroom {
namespace {

using Kind = AllocatorEvent::Kind;

/// A file that goes away with the test.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / std::string("headroom-recording-")
                                                         .append(std::to_string(::getpid()))
                                                         .append("-")
                                                         .append(std::to_string(count++));
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string bytes() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void cut(std::size_t length) const { std::filesystem::resize_file(path_, length); }
  void put(std::size_t at, char byte) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)).put(byte);
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

 private:
  std::filesystem::path path_;
};

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

/// What is wrong with the file, as its one error says; empty: nothing.
std::string fault_of(const TemporaryFile& file) {
  try {
    static_cast<void>(read_recording(file.path()));
  } catch (const BadFile& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("event file " + file.path() + ": expected "), 0U) << what;
    EXPECT_NE(what.find(" at offset "), std::string::npos) << what;
    return what;
  }
  return {};
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

}  // namespace
}  // namespace headroom
