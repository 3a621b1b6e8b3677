// summarize() on hand-made traces; times are seconds here and nanoseconds in the records.
#include <headroom/trace.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace headroom {
namespace {

constexpr StreamId kCompute = 0, kGather = 1, kReduce = 2, kTransfer = 3, kCompute2 = 4;
constexpr double kTolerance = 1e-9;

std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

class TraceSummaryTest : public ::testing::Test {
 protected:
  TraceSummaryTest() {
    trace_.add_stream({kCompute, StreamRole::compute, "compute"});
    trace_.add_stream({kGather, StreamRole::gather, "gather"});
    trace_.add_stream({kReduce, StreamRole::reduce, "reduce"});
    trace_.add_stream({kTransfer, StreamRole::transfer, "transfer"});
    trace_.add_stream({kCompute2, StreamRole::compute, "compute2"});
  }
  Ticket work(StreamId stream, double issued, double start, double end) {
    return add({OperationRecord::Kind::work, stream, 0, "work", -1, ns(issued), ns(start), ns(end)});
  }
  Ticket wait(StreamId stream, double issued, double start, double end, StreamId producer, Ticket ticket) {
    return add({OperationRecord::Kind::wait, stream, 0, "wait", -1, ns(issued), ns(start), ns(end), producer, ticket});
  }
  void host(HostCause cause, double start, double end) { trace_.add(HostSpan{cause, ns(start), ns(end)}); }
  Ticket mark(StreamId stream) { return ++tickets_[stream]; }  // marks leave no record
  [[nodiscard]] TraceSummary summary(double begin, double end) const { return summarize(trace_, ns(begin), ns(end)); }
  static void expect_path(const TraceSummary& s, double compute, double gather, double reduce, double host) {
    EXPECT_NEAR(s.path_compute, compute, kTolerance);
    EXPECT_NEAR(s.path_gather, gather, kTolerance);
    EXPECT_NEAR(s.path_reduce, reduce, kTolerance);
    EXPECT_NEAR(s.path_host, host, kTolerance);
  }

  Trace trace_;

 private:
  Ticket add(OperationRecord record) {
    record.ticket = ++tickets_[record.stream];
    trace_.add(record);
    return record.ticket;
  }
  Ticket tickets_[5] = {};
};

TEST_F(TraceSummaryTest, EmptyTrace_IsAllIdleAndHost) {
  const TraceSummary s = summary(1, 3);
  EXPECT_NEAR(s.device_idle, 2, kTolerance);
  EXPECT_EQ(s.busy, 0);
  EXPECT_EQ(s.exposed, 0);
  EXPECT_EQ(s.completion, 0);
  expect_path(s, 0, 0, 0, 2);
}

TEST_F(TraceSummaryTest, EmptyWindow_IsAllZero) {
  work(kCompute, 0, 0, 1);
  const TraceSummary s = summary(1, 1);
  EXPECT_EQ(s.device_idle, 0);
  EXPECT_EQ(s.path_host, 0);
}

TEST_F(TraceSummaryTest, ComputeBehindAGather_ExposesTheWait) {
  const Ticket gathered = work(kGather, 0, 0, 3);
  work(kCompute, 0, 0, 1);
  wait(kCompute, 0, 1, 3, kGather, gathered);
  work(kCompute, 0, 3, 5);
  const TraceSummary s = summary(0, 6);
  EXPECT_NEAR(s.busy, 3, kTolerance);
  EXPECT_NEAR(s.exposed, 2, kTolerance);
  EXPECT_NEAR(s.completion, 3, kTolerance);
  EXPECT_NEAR(s.device_idle, 1, kTolerance);
  expect_path(s, 2, 3, 0, 1);
}

TEST_F(TraceSummaryTest, HiddenGather_IsNotOnThePath) {
  const Ticket gathered = work(kGather, 0, 0, 1);
  work(kCompute, 0, 0, 2);
  wait(kCompute, 0, 2, 2, kGather, gathered);
  work(kCompute, 0, 2, 4);
  const TraceSummary s = summary(0, 4);
  EXPECT_EQ(s.exposed, 0);
  EXPECT_EQ(s.device_idle, 0);
  expect_path(s, 4, 0, 0, 0);
}

TEST_F(TraceSummaryTest, ReductionAtTheEnd_IsOnThePathAndNotExposed) {
  const Ticket computed = work(kCompute, 0, 0, 2);
  wait(kReduce, 0, 0, 2, kCompute, computed);
  work(kReduce, 0, 2, 5);
  const TraceSummary s = summary(0, 5);
  EXPECT_NEAR(s.busy, 3, kTolerance);
  EXPECT_EQ(s.exposed, 0);
  EXPECT_NEAR(s.completion, 5, kTolerance);
  EXPECT_NEAR(s.device_idle, 3, kTolerance);
  expect_path(s, 2, 0, 3, 0);
}

TEST_F(TraceSummaryTest, WaitForAMarkBehindAWait_ReachesTheWorkBehindIt) {
  const Ticket gathered = work(kGather, 0, 0, 4);
  wait(kReduce, 0, 0, 4, kGather, gathered);
  wait(kCompute, 0, 0, 4, kReduce, mark(kReduce));
  work(kCompute, 0, 4, 5);
  const TraceSummary s = summary(0, 5);
  EXPECT_NEAR(s.exposed, 4, kTolerance);
  expect_path(s, 1, 4, 0, 0);
}

TEST_F(TraceSummaryTest, LateIssue_PutsTheHostOnThePath) {
  work(kCompute, 0, 0, 1);
  work(kCompute, 3, 3, 4);
  const TraceSummary s = summary(0, 4);
  EXPECT_NEAR(s.device_idle, 2, kTolerance);
  expect_path(s, 1, 0, 0, 3);
}

TEST_F(TraceSummaryTest, LateIssueBehindAThrottle_GoesOnFromWhatItWaitedFor) {
  work(kCompute, 0, 0, 2);
  host(HostCause::throttle, 1, 2.25);  // waits for the compute of 0..2
  work(kGather, 2.5, 2.5, 4);
  const TraceSummary s = summary(0, 4);
  EXPECT_NEAR(s.throttle, 1.25, kTolerance);
  expect_path(s, 2, 1.5, 0, 0.5);
}

TEST_F(TraceSummaryTest, ThrottleThatDidNotWait_LeavesTheHostOnThePath) {
  work(kCompute, 0, 0, 1);
  host(HostCause::throttle, 2, 2.25);  // nothing completed meanwhile
  work(kCompute, 3, 3, 4);
  expect_path(summary(0, 4), 1, 0, 0, 3);
}

TEST_F(TraceSummaryTest, HostSpans_AreClippedAndSummedByCause) {
  host(HostCause::allocator, 0, 2);
  host(HostCause::launch, 2, 3);
  host(HostCause::launch, 3, 3.5);
  host(HostCause::vote, 4, 9);
  host(HostCause::throttle, 20, 21);
  const TraceSummary s = summary(1, 5);
  EXPECT_NEAR(s.allocator, 1, kTolerance);
  EXPECT_NEAR(s.launch, 1.5, kTolerance);
  EXPECT_NEAR(s.vote, 1, kTolerance);
  EXPECT_EQ(s.throttle, 0);
}

TEST_F(TraceSummaryTest, HostSpansWithinOthers_AreTimeOfTheirOwnCauseOnly) {
  host(HostCause::throttle, 1.5, 2.5);  // inner spans are recorded first
  host(HostCause::allocator, 3, 3.5);
  host(HostCause::launch, 1, 4);
  host(HostCause::launch, 4, 5);
  host(HostCause::vote, 5, 7);
  const TraceSummary s = summary(0, 6);
  EXPECT_NEAR(s.throttle, 1, kTolerance);
  EXPECT_NEAR(s.allocator, 0.5, kTolerance);
  EXPECT_NEAR(s.launch, 2.5, kTolerance);
  EXPECT_NEAR(s.vote, 1, kTolerance);
}

TEST_F(TraceSummaryTest, WorkAcrossTheWindowsEdges_IsClipped) {
  work(kGather, 0, 0, 3);
  work(kCompute, 0, 1, 9);
  const TraceSummary s = summary(2, 5);
  EXPECT_NEAR(s.busy, 1, kTolerance);
  EXPECT_NEAR(s.completion, 1, kTolerance);
  EXPECT_EQ(s.device_idle, 0);
  expect_path(s, 3, 0, 0, 0);
}

TEST_F(TraceSummaryTest, WaitForATransfer_IsIdleNotExposed) {
  const Ticket copied = work(kTransfer, 0, 0, 2);
  wait(kCompute, 0, 0, 2, kTransfer, copied);
  work(kCompute, 0, 2, 3);
  const TraceSummary s = summary(0, 3);
  EXPECT_EQ(s.exposed, 0);
  EXPECT_EQ(s.busy, 0);
  EXPECT_NEAR(s.device_idle, 2, kTolerance);
  expect_path(s, 1, 0, 0, 2);
}

TEST_F(TraceSummaryTest, WaitBehindAnotherComputeStream_IsNotExposed) {
  const Ticket gathered = work(kGather, 0, 0, 4);
  wait(kCompute, 0, 0, 4, kGather, gathered);
  work(kCompute2, 0, 1, 3);
  const TraceSummary s = summary(0, 4);
  EXPECT_NEAR(s.exposed, 2, kTolerance);  // 0..1 and 3..4
  EXPECT_EQ(s.device_idle, 0);
}

TEST_F(TraceSummaryTest, SkippedWork_TakesNoTime) {
  work(kCompute, 0, 0, 1);
  OperationRecord skipped{OperationRecord::Kind::skipped, kCompute, 2, "skipped", -1, 0, ns(1), ns(1)};
  trace_.add(skipped);
  const TraceSummary s = summary(0, 2);
  EXPECT_NEAR(s.device_idle, 1, kTolerance);
  expect_path(s, 1, 0, 0, 1);
}

TEST_F(TraceSummaryTest, RecordsOfEqualTimes_DoNotTrapTheWalk) {
  for (int i = 0; i < 5; ++i) work(kCompute, 1, 1, 1);
  host(HostCause::throttle, 1, 1);
  expect_path(summary(0, 2), 0, 0, 0, 2);
}

}  // namespace
}  // namespace headroom
