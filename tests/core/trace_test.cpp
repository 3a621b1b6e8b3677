#include <headroom/trace.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace headroom {
namespace {

OperationRecord record_at(StreamId stream, Ticket ticket, std::int64_t start_ns, std::int64_t end_ns) {
  OperationRecord record;
  record.stream = stream;
  record.ticket = ticket;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  return record;
}

TEST(Trace, Operations_AreSortedByStartStreamAndTicket) {
  Trace trace;
  trace.add(record_at(1, 2, 30, 40));
  trace.add(record_at(1, 1, 10, 20));
  trace.add(record_at(0, 9, 30, 35));
  trace.add(record_at(0, 8, 30, 30));
  const std::vector<OperationRecord> found = trace.operations();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].ticket, 1U);
  EXPECT_EQ(found[1].ticket, 8U);
  EXPECT_EQ(found[2].ticket, 9U);
  EXPECT_EQ(found[3].ticket, 2U);
}

TEST(Trace, OperationsOfAWindow_AreThoseThatTouchIt) {
  Trace trace;
  trace.add(record_at(0, 1, 0, 9));
  trace.add(record_at(0, 2, 9, 10));
  trace.add(record_at(0, 3, 12, 14));
  trace.add(record_at(0, 4, 20, 21));
  trace.add(record_at(0, 5, 21, 22));
  const std::vector<OperationRecord> found = trace.operations(10, 20);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.front().ticket, 2U);
  EXPECT_EQ(found.back().ticket, 4U);
}

TEST(Trace, BeyondCapacity_DropsAndCounts) {
  Trace trace(2);
  for (Ticket i = 1; i <= 5; ++i) trace.add(record_at(0, i, 0, 0));
  for (int i = 0; i < 3; ++i) trace.add(HostSpan{HostCause::launch, i, i + 1});
  EXPECT_EQ(trace.operations().size(), 2U);
  EXPECT_EQ(trace.host_spans().size(), 2U);
  EXPECT_EQ(trace.dropped(), 4U);
}

TEST(Trace, Disabled_RecordsNothing) {
  Trace trace;
  EXPECT_TRUE(trace.enabled());
  trace.set_enabled(false);
  EXPECT_FALSE(trace.enabled());
  trace.add(record_at(0, 1, 0, 1));
  trace.add(HostSpan{});
  trace.add_stream({0, StreamRole::gather, "gather"});
  EXPECT_TRUE(trace.operations().empty());
  EXPECT_TRUE(trace.host_spans().empty());
  EXPECT_EQ(trace.dropped(), 0U);
  EXPECT_EQ(trace.streams().size(), 1U);  // who the streams are is needed whenever tracing starts
}

TEST(Trace, Clear_ForgetsRecordsAndKeepsStreams) {
  Trace trace(1);
  trace.add_stream({0, StreamRole::compute, "compute"});
  trace.add(record_at(0, 1, 0, 1));
  trace.add(record_at(0, 2, 1, 2));
  trace.clear();
  EXPECT_TRUE(trace.operations().empty());
  EXPECT_EQ(trace.dropped(), 0U);
  ASSERT_EQ(trace.streams().size(), 1U);
  EXPECT_EQ(trace.streams().front().name, "compute");
  trace.add(record_at(0, 3, 2, 3));
  EXPECT_EQ(trace.operations().size(), 1U);
}

TEST(Trace, ThreadsAddingAndReading_LoseNothing) {
  constexpr Ticket kEach = 2000;
  Trace trace;
  std::vector<std::thread> threads;
  for (StreamId stream = 0; stream < 3; ++stream) {
    threads.emplace_back([&trace, stream] {
      for (Ticket i = 1; i <= kEach; ++i) trace.add(record_at(stream, i, 0, 0));
    });
  }
  while (trace.operations().size() < 3 * kEach) std::this_thread::yield();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.operations().size(), 3 * kEach);
}

}  // namespace
}  // namespace headroom
