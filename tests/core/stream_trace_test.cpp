// What running streams leave in their device's trace.
#include "core/executors.hpp"
#include "runtime/core/host_span.hpp"

namespace headroom::test {
namespace {

class StreamTrace : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(Executors, StreamTrace, every_executor(), case_name);

TEST_P(StreamTrace, Operation_LeavesItsNameUnitAndTimes) {
  Stream stream(device_, {StreamRole::gather, "gather"});
  Operation operation = host_operation([] {}, "all_gather");
  operation.unit = 5;
  const std::int64_t before_ns = device_.now_ns();
  const Ticket ticket = stream.ref().enqueue(std::move(operation));
  stream.ref().synchronize();
  const std::int64_t after_ns = device_.now_ns();
  const std::vector<OperationRecord> records = device_.trace().operations();
  ASSERT_EQ(records.size(), 1U);
  const OperationRecord& record = records.front();
  EXPECT_EQ(record.kind, OperationRecord::Kind::work);
  EXPECT_EQ(record.stream, stream.ref().id());
  EXPECT_EQ(record.ticket, ticket);
  EXPECT_STREQ(record.name, "all_gather");
  EXPECT_EQ(record.unit, 5);
  EXPECT_LE(before_ns, record.issued_ns);
  EXPECT_LE(record.issued_ns, record.start_ns);
  EXPECT_LE(record.start_ns, record.end_ns);
  EXPECT_LE(record.end_ns, after_ns);
}

TEST_P(StreamTrace, Wait_LeavesItsProducerAndHowLongItTook) {
  Stream producer(device_);
  Stream consumer(device_);
  const Ticket awaited = producer.ref().enqueue(host_operation([] {}));
  consumer.ref().enqueue(host_operation([] {}));
  consumer.ref().wait(producer, awaited);
  consumer.ref().enqueue(host_operation([] {}));
  consumer.ref().synchronize();
  std::vector<OperationRecord> own;
  std::int64_t produced_ns = 0;
  for (const OperationRecord& record : device_.trace().operations()) {
    if (record.stream == consumer.ref().id()) own.push_back(record);
    if (record.stream == producer.ref().id()) produced_ns = record.end_ns;
  }
  ASSERT_EQ(own.size(), 3U);
  EXPECT_EQ(own[1].kind, OperationRecord::Kind::wait);
  EXPECT_EQ(own[1].producer, producer.ref().id());
  EXPECT_EQ(own[1].producer_ticket, awaited);
  EXPECT_GE(own[1].start_ns, own[0].end_ns);
  EXPECT_GE(own[1].end_ns, produced_ns);
  EXPECT_GE(own[2].start_ns, own[1].end_ns);
}

TEST_P(StreamTrace, Marks_LeaveNoRecord) {
  Stream stream(device_);
  stream.ref().enqueue(host_operation([] {}));
  static_cast<void>(stream.ref().mark());
  stream.ref().synchronize();
  EXPECT_EQ(device_.trace().operations().size(), 1U);
}

TEST_P(StreamTrace, Streams_AreNamedWithTheirRoles) {
  const Stream compute(device_);
  const Stream gather(device_, {StreamRole::gather, "gather"});
  const std::vector<StreamInfo> streams = device_.trace().streams();
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0].id, compute.ref().id());
  EXPECT_EQ(streams[0].role, StreamRole::compute);
  EXPECT_EQ(streams[1].role, StreamRole::gather);
  EXPECT_EQ(streams[1].name, "gather");
}

TEST_P(StreamTrace, HostSpanTimer_AddsItsLifetime) {
  const std::int64_t before_ns = device_.now_ns();
  { const detail::HostSpanTimer timer(device_, HostCause::vote); }
  const std::vector<HostSpan> spans = device_.trace().host_spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].cause, HostCause::vote);
  EXPECT_LE(before_ns, spans[0].start_ns);
  EXPECT_LE(spans[0].start_ns, spans[0].end_ns);
  EXPECT_LE(spans[0].end_ns, device_.now_ns());
}

}  // namespace
}  // namespace headroom::test
