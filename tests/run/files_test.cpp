// What a run writes beside its report.

#include "memory/recording_files.hpp"
#include "report/snapshot_state.hpp"
#include "report/trace_file.hpp"
#include "report/trace_flows.hpp"
#include "run/recorder.hpp"

#include <headroom/allocator.hpp>
#include <headroom/recording.hpp>
#include <headroom/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <map>
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

using Kind = AllocatorEvent::Kind;
using Action = SnapshotEntry::Action;

AllocatorEvent event_of(Kind kind, std::uint64_t allocation, std::uint64_t address, std::uint64_t bytes,
                        std::int64_t time_ns = 0) {
  AllocatorEvent event;
  event.kind = kind;
  event.allocation = allocation;
  event.address = address;
  event.bytes = event.requested_bytes = bytes;
  event.time_ns = time_ns;
  event.flags = kind == Kind::free_requested ? AllocatorEvent::kPending : std::uint8_t{0};
  return event;
}

/// A file with these events, numbered, and nothing else but a name for them.
void write_recording(const TemporaryFile& file, std::vector<AllocatorEvent> events) {
  std::string payload;
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].number = i;
    payload += detail::bytes_of(events[i]);
  }
  file.write(header() + one(detail::ChunkKind::info, detail::InfoRecord{0, 1, 0, 0, 4096, 4096, 4096}) +
             chunk(detail::ChunkKind::names, 1, text("a")) +
             chunk(detail::ChunkKind::events, static_cast<std::uint32_t>(events.size()), payload) +
             one(detail::ChunkKind::end, detail::EndRecord{events.size(), 0, 0, 3}));
}

constexpr std::uint64_t kBase = 1U << 20, kPage = 1U << 21;

const std::vector<AllocatorEvent> kThreeSteps{event_of(Kind::segment_map, 0, kBase, kPage),
                                              event_of(Kind::step, 1, 0, 0),
                                              event_of(Kind::alloc, 7, kBase, 512),
                                              event_of(Kind::step, 2, 0, 0),
                                              event_of(Kind::alloc, 8, kBase + 512, 1024),
                                              event_of(Kind::free_requested, 7, kBase, 512),
                                              event_of(Kind::step, 3, 0, 0),
                                              event_of(Kind::free_completed, 7, kBase, 512),
                                              event_of(Kind::segment_map, 0, kBase + kPage, kPage)};

std::vector<Action> actions_of(const SnapshotState& state) {
  std::vector<Action> actions;
  for (const SnapshotEntry& entry : state.entries()) actions.push_back(entry.action);
  return actions;
}

TEST(Snapshot, Window_BeginsWithAllThatWasThere) {
  const TemporaryFile file;
  write_recording(file, kThreeSteps);
  RecordingReader reader(file.path());
  ASSERT_TRUE(reader.next());
  SnapshotState state(reader, 100);
  for (std::size_t i = 0; i < reader.events().size(); ++i) {
    if (i == 6) state.begin_window();
    state.apply(i);
  }
  EXPECT_EQ(actions_of(state),
            (std::vector<Action>{Action::segment_map, Action::alloc, Action::alloc, Action::free_requested,
                                 Action::free_completed, Action::segment_map}));
  EXPECT_EQ(state.mapped(), (std::map<std::uint64_t, std::uint64_t>{{kBase, kBase + 2 * kPage}}));
  ASSERT_EQ(state.blocks().size(), 1U);
  EXPECT_EQ(state.blocks().begin()->second.site.step, 2);
  EXPECT_FALSE(state.overflowed());
}

TEST(Snapshot, MoreEntriesThanItMayHave_KeepsTheLast) {
  const TemporaryFile file;
  write_recording(file, kThreeSteps);
  RecordingReader reader(file.path());
  ASSERT_TRUE(reader.next());
  SnapshotState state(reader, 2);
  for (std::size_t i = 0; i < reader.events().size(); ++i) state.apply(i);
  EXPECT_EQ(actions_of(state), (std::vector<Action>{Action::free_completed, Action::segment_map}));
  EXPECT_TRUE(state.overflowed());
}

/// Its events follow one another, but their addresses cannot be.
TEST(Snapshot, BlocksThatCannotLieThere_AreRefusedByOffset) {
  const AllocatorEvent map = kThreeSteps[0], alloc = kThreeSteps[2];
  const std::vector<AllocatorEvent> bad{
      event_of(Kind::alloc, 9, kBase - 512, 512),   event_of(Kind::alloc, 9, kBase + 256, 512),
      event_of(Kind::alloc, 9, kBase + kPage, 512), event_of(Kind::alloc, 9, UINT64_MAX - 10, 512),
      event_of(Kind::segment_map, 0, kBase, kPage), event_of(Kind::segment_map, 0, kBase + 512, 512),
      event_of(Kind::segment_unmap, 0, kBase, 512), event_of(Kind::segment_map, 0, UINT64_MAX - 10, 512),
  };
  const TemporaryFile file;
  for (const AllocatorEvent& last : bad) {
    write_recording(file, {map, alloc, last});
    RecordingReader reader(file.path());
    ASSERT_TRUE(reader.next());
    SnapshotState state(reader, 100);
    state.apply(0);
    state.apply(1);
    try {
      state.apply(2);
      ADD_FAILURE() << "accepted: kind " << static_cast<int>(last.kind) << " at " << last.address;
    } catch (const BadFile& error) {
      constexpr std::size_t kNamesBytes = 16 + 5;
      constexpr std::size_t kOffset =
          16 + 16 + sizeof(detail::InfoRecord) + kNamesBytes + 16 + 2 * sizeof(AllocatorEvent);
      EXPECT_NE(std::string(error.what()).find(" at offset " + std::to_string(kOffset)), std::string::npos)
          << error.what();
    }
  }
}

nlohmann::json trace_of(const TemporaryFile& recording, const TraceLimits& limits = {}) {
  const TemporaryFile file;
  write_trace({recording.path()}, file.path(), limits);
  return nlohmann::json::parse(file.bytes()).at("traceEvents");
}

/// Allocated bytes of each sample, by time in nanoseconds.
std::vector<std::pair<std::int64_t, std::size_t>> samples_of(const nlohmann::json& events) {
  std::vector<std::pair<std::int64_t, std::size_t>> samples;
  for (const auto& event : events) {
    if (event.at("name") != "reserved bytes") continue;
    samples.emplace_back(std::llround(event.at("ts").get<double>() * 1000), event.at("args").at("allocated"));
  }
  return samples;
}

TEST(TraceFile, ManyEventsWithinTenMicroseconds_ShowTheHighest) {
  const TemporaryFile file;
  write_recording(
      file, {event_of(Kind::alloc, 1, 0, 512, 1'000), event_of(Kind::alloc, 2, 512, 512, 2'000),
             event_of(Kind::free_requested, 2, 512, 512, 3'000), event_of(Kind::free_completed, 2, 512, 512, 3'500),
             event_of(Kind::alloc, 3, 512, 512, 55'000), event_of(Kind::step, 1, 0, 0, 57'000)});
  EXPECT_EQ(samples_of(trace_of(file)), (std::vector<std::pair<std::int64_t, std::size_t>>{
                                            {2'000, 1024}, {10'000, 512}, {55'000, 1024}, {57'000, 1024}}));
}

TEST(TraceFile, LargeBuffers_LiveFromBeginToEnd) {
  const TemporaryFile file;
  write_recording(
      file, {event_of(Kind::alloc, 1, 0, kPage, 1'000), event_of(Kind::alloc, 2, kPage, 512, 2'000),
             event_of(Kind::free_requested, 1, 0, kPage, 3'000), event_of(Kind::free_completed, 1, 0, kPage, 4'000),
             event_of(Kind::alloc, 3, 0, kPage, 5'000)});
  std::map<std::string, std::vector<double>> lives;
  for (const auto& event : trace_of(file)) {
    if (event.at("ph") == "b" || event.at("ph") == "e") lives[event.at("id")].push_back(event.at("ts"));
  }
  EXPECT_EQ(lives, (std::map<std::string, std::vector<double>>{{"0x0", {1, 4}}, {"0x4", {5, 5}}}));
  lives.clear();
  for (const auto& event : trace_of(file, {.lifetimes = 1}))
    if (event.at("ph") == "b") lives[event.at("id")];
  EXPECT_EQ(lives.size(), 1U);
  EXPECT_TRUE(lives.count("0x4"));
}

RecordedOperation operation_of(StreamId stream, Ticket ticket, std::int64_t start_ns, std::int64_t end_ns) {
  RecordedOperation made;
  made.stream = stream;
  made.ticket = ticket;
  made.start_ns = start_ns;
  made.end_ns = end_ns;
  return made;
}

TEST(TraceFlows, Wait_FindsTheLastOperationUpToItsTicket) {
  RecordedOperation wait = operation_of(0, 5, 10, 40);
  wait.kind = OperationRecord::Kind::wait;
  wait.producer = 1;
  wait.producer_ticket = 7;  // a mark, which leaves no record
  WaitMatcher matcher;
  EXPECT_TRUE(matcher.add(operation_of(1, 4, 0, 5)).empty());
  EXPECT_TRUE(matcher.add(wait).empty());
  EXPECT_TRUE(matcher.add(operation_of(1, 6, 20, 39)).empty());
  const std::vector<EndedWait> ended = matcher.add(operation_of(1, 8, 41, 50));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].producer.ticket, 6U);
  EXPECT_EQ(ended[0].wait.ticket, 5U);
  EXPECT_TRUE(matcher.finish().empty());

  EXPECT_EQ(matcher.add(wait).size(), 1U);  // of an operation that came before
  wait.producer_ticket = 9;
  EXPECT_TRUE(matcher.add(wait).empty());
  ASSERT_EQ(matcher.finish().size(), 1U);
}

TEST(Recorder, LogThatWouldOverflow_IsWrittenBefore) {
  const TemporaryFile file;
  const Job job = Job::from_environment();
  const Device device = job.device();
  CachingAllocator memory(device, {.event_capacity = AllocatorOptions{}.event_capacity});
  const Stream compute(device);
  Recorder recorder(memory);
  recorder.open(file.path(), make_config({}), *job.communicators().control, {"h.0"});
  const std::size_t enough = AllocatorOptions{}.event_capacity / 4;  // three events each
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < enough; ++i) static_cast<void>(memory.allocate({.bytes = 512, .name = "x"}, compute));
    recorder.relieve_log();
  }
  EXPECT_GT(memory.dropped_events(), 0U);
  recorder.finish();
  RecordingReader reader(file.path());
  std::uint64_t events = 0;
  while (reader.next()) events += reader.events().size();
  EXPECT_EQ(events, memory.events().back().number + 1);
  EXPECT_EQ(reader.info().units, std::vector<std::string>{"h.0"});
  EXPECT_TRUE(nlohmann::json::parse(reader.notes().at("config")).contains("seq"));
}

}  // namespace
}  // namespace headroom::bench
