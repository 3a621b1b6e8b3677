// What every device promises about order, tickets, waits and events.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/executors.hpp"

namespace headroom::test {
namespace {

class StreamContract : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(Executors, StreamContract, every_executor(), case_name);

TEST_P(StreamContract, Enqueue_SameStream_RunsInOrder) {
  Stream stream(device_);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(stream.ref().enqueue(host_operation([&order, i] { order.push_back(i); })), Ticket(i + 1));
  }
  stream.ref().synchronize();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(StreamContract, Tickets_AfterSynchronize_AreComplete) {
  Stream stream(device_);
  EXPECT_EQ(stream.ref().issued(), 0U);
  EXPECT_TRUE(stream.ref().complete(0));
  const Ticket ticket = stream.ref().enqueue(host_operation([] {}));
  EXPECT_EQ(stream.ref().issued(), ticket);
  stream.ref().synchronize(ticket);
  EXPECT_TRUE(stream.ref().complete(ticket));
}

TEST_P(StreamContract, Synchronize_EarlierTicket_LeavesLaterWorkAlone) {
  Stream stream(device_);
  std::atomic<bool> open{false};
  const Ticket first = stream.ref().enqueue(host_operation([] {}));
  const Ticket second =
      stream.ref().enqueue(poll_operation([&] { return open.load() ? Progress::done : Progress::blocked; }));
  stream.ref().synchronize(first);
  EXPECT_TRUE(stream.ref().complete(first));
  EXPECT_FALSE(stream.ref().complete(second));
  open = true;
  stream.ref().synchronize();
  EXPECT_TRUE(stream.ref().complete(second));
}

TEST_P(StreamContract, Wait_AcrossStreams_OrdersConsumerAfterProducer) {
  Stream producer(device_);
  Stream consumer(device_);
  int value = 0;  // not atomic: the sanitizer sees whether the wait orders the two
  for (int round = 1; round <= 200; ++round) {
    const Ticket written = producer.ref().enqueue(host_operation([&value] { ++value; }));
    consumer.ref().wait(producer, written);
    const Ticket read = consumer.ref().enqueue(host_operation([&value, round] { EXPECT_EQ(value, round); }));
    producer.ref().wait(consumer, read);
  }
  consumer.ref().synchronize();
}

TEST_P(StreamContract, Wait_ForOwnStreamOrTicketZero_EnqueuesNothing) {
  Stream stream(device_);
  Stream other(device_);
  const Ticket ticket = stream.ref().enqueue(host_operation([] {}));
  stream.ref().wait(stream, ticket);
  stream.ref().wait(other, 0);
  EXPECT_EQ(stream.ref().issued(), ticket);
}

TEST_P(StreamContract, Wait_ForAnotherDevice_IsRefused) {
  const Device other_device = make_device(GetParam());
  Stream stream(device_);
  Stream stranger(other_device);
  EXPECT_THROW(stream.ref().wait(stranger, 0), std::logic_error);
  EXPECT_THROW(static_cast<void>(stream.ref().knows(stranger)), std::logic_error);
}

TEST_P(StreamContract, Tickets_NotIssuedYet_AreRefused) {
  Stream stream(device_);
  Stream other(device_);
  EXPECT_THROW(stream.ref().wait(other, 1), std::logic_error);
  EXPECT_THROW(stream.ref().synchronize(1), std::logic_error);
  EXPECT_THROW(static_cast<void>(stream.ref().complete(1)), std::logic_error);
}

TEST_P(StreamContract, Enqueue_WithoutBody_IsRefused) {
  Stream stream(device_);
  EXPECT_THROW(stream.ref().enqueue(Operation{}), std::logic_error);
  EXPECT_EQ(stream.ref().issued(), 0U);
}

TEST_P(StreamContract, OperationThatWaitsForAStream_IsRefused) {
  Stream stream(device_);
  stream.ref().enqueue(host_operation([&stream] { stream.ref().synchronize(); }));
  EXPECT_THROW(stream.ref().synchronize(), std::logic_error);
}

TEST_P(StreamContract, OperationThatEnqueues_OrdersItsWorkLikeAnyOther) {
  Stream stream(device_);
  Stream other(device_);
  int value = 0;
  stream.ref().enqueue(host_operation([&] { other.ref().enqueue(host_operation([&value] { value = 1; })); }));
  stream.ref().synchronize();
  other.ref().synchronize();
  EXPECT_EQ(value, 1);
}

TEST_P(StreamContract, Knows_AfterWaits_IsTransitive) {
  Stream a(device_);
  Stream b(device_);
  Stream c(device_);
  const Ticket at_a = a.ref().enqueue(host_operation([] {}));
  b.ref().wait(a, at_a);
  const Ticket at_b = b.ref().enqueue(host_operation([] {}));
  EXPECT_EQ(c.ref().knows(a), 0U);
  c.ref().wait(b, at_b);
  EXPECT_EQ(c.ref().knows(b), at_b);
  EXPECT_EQ(c.ref().knows(a), at_a);
  EXPECT_EQ(a.ref().knows(c), 0U);
  EXPECT_EQ(a.ref().knows(a), a.ref().issued());
}

TEST_P(StreamContract, Knows_WaitForOldTicket_TeachesNothingNewer) {
  Stream a(device_);
  Stream b(device_);
  Stream c(device_);
  const Ticket old_b = b.ref().enqueue(host_operation([] {}));
  const Ticket at_a = a.ref().enqueue(host_operation([] {}));
  b.ref().wait(a, at_a);
  c.ref().wait(b, old_b);
  EXPECT_EQ(c.ref().knows(b), old_b);
  EXPECT_EQ(c.ref().knows(a), 0U);
}

TEST_P(StreamContract, Mark_OnBusyStream_CoversWorkSoFar) {
  Stream stream(device_);
  bool ran = false;
  const Ticket work = stream.ref().enqueue(host_operation([&ran] { ran = true; }));
  const Ticket mark = stream.ref().mark();
  EXPECT_GT(mark, work);
  stream.ref().synchronize(mark);
  EXPECT_TRUE(ran);
}

TEST_P(StreamContract, Mark_OnIdleStream_IsFreshAndComplete) {
  Stream stream(device_);
  const Ticket first = stream.ref().mark();
  const Ticket second = stream.ref().mark();
  EXPECT_GT(second, first);
  EXPECT_TRUE(stream.ref().complete(second));
}

TEST_P(StreamContract, Destructor_WithQueuedWork_Drains) {
  int ran = 0;
  {
    Stream stream(device_);
    for (int i = 0; i < 50; ++i) stream.ref().enqueue(host_operation([&ran] { ++ran; }));
  }
  EXPECT_EQ(ran, 50);
}

TEST_P(StreamContract, Destructor_OfProducer_LeavesItsTicketsWaitable) {
  Stream consumer(device_);
  int value = 0;
  {
    Stream producer(device_);
    consumer.ref().wait(producer, producer.ref().enqueue(host_operation([&value] { value = 7; })));
    consumer.ref().enqueue(host_operation([&value] { EXPECT_EQ(value, 7); }));
  }
  consumer.ref().synchronize();
}

TEST_P(StreamContract, Move_OfStream_KeepsItsWork) {
  int ran = 0;
  Stream first(device_);
  first.ref().enqueue(host_operation([&ran] { ++ran; }));
  Stream second(std::move(first));
  second.ref().enqueue(host_operation([&ran] { ++ran; }));
  Stream third(device_);
  third = std::move(second);
  third.ref().synchronize();
  EXPECT_EQ(ran, 2);
}

TEST_P(StreamContract, StreamIds_AfterDestruction_AreNotReused) {
  StreamId previous = Stream(device_).ref().id();
  for (int i = 0; i < 5; ++i) {
    const StreamId next = Stream(device_).ref().id();
    EXPECT_EQ(next, previous + 1);
    previous = next;
  }
}

TEST_P(StreamContract, Enqueue_OnDestroyedStream_IsRefused) {
  StreamRef dangling = Stream(device_).ref();
  EXPECT_THROW(dangling.enqueue(host_operation([] {})), std::logic_error);
  EXPECT_THROW(static_cast<void>(dangling.mark()), std::logic_error);
}

TEST_P(StreamContract, Capture_OfFinishedOperation_IsDestroyedBeforeItsTicketCompletes) {
  Stream stream(device_);
  const auto owned = std::make_shared<int>(1);
  stream.ref().enqueue(host_operation([owned] { static_cast<void>(*owned); }));
  stream.ref().synchronize();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(StreamContract, Event_NeverRecorded_IsReadyAndWaitsForNothing) {
  Stream stream(device_);
  const Event event;
  EXPECT_TRUE(event.ready());
  event.synchronize();
  stream.ref().wait(event);
  EXPECT_EQ(stream.ref().issued(), 0U);
}

TEST_P(StreamContract, Event_Recorded_OrdersStreamsAndHost) {
  Stream producer(device_);
  Stream consumer(device_);
  int value = 0;
  Event event;
  producer.ref().enqueue(host_operation([&value] { value = 1; }));
  event.record(producer);
  consumer.ref().wait(event);
  consumer.ref().enqueue(host_operation([&value] { EXPECT_EQ(value, 1); }));
  event.synchronize();
  EXPECT_TRUE(event.ready());
  EXPECT_EQ(value, 1);
  consumer.ref().synchronize();
}

TEST_P(StreamContract, Event_RecordedAgain_MeansTheLaterPoint) {
  Stream stream(device_);
  std::atomic<bool> open{false};
  Event event;
  event.record(stream);
  EXPECT_TRUE(event.ready());
  stream.ref().enqueue(poll_operation([&] { return open.load() ? Progress::done : Progress::blocked; }));
  event.record(stream);
  EXPECT_FALSE(event.ready());
  open = true;
  event.synchronize();
  EXPECT_TRUE(event.ready());
}

TEST_P(StreamContract, ManyStreams_InARing_KeepEveryOrder) {
  constexpr std::size_t kStreams = 24;
  constexpr int kRounds = 20;
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < kStreams; ++i) streams.emplace_back(device_);
  long value = 0;
  long expected = 0;
  StreamRef previous = streams.back();
  for (int round = 0; round < kRounds; ++round) {
    for (const Stream& stream : streams) {
      stream.ref().wait(previous, previous.issued());
      stream.ref().enqueue(host_operation([&value, expected] { EXPECT_EQ(value++, expected); }));
      ++expected;
      previous = stream;
    }
  }
  previous.synchronize();
  EXPECT_EQ(value, long{kStreams} * kRounds);
}

TEST_P(StreamContract, HostThreads_IssuingAtOnce_LoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  Stream shared(device_);
  int value = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Stream own(device_);
      for (int i = 0; i < kEach; ++i) {
        own.ref().wait(shared, shared.ref().enqueue(host_operation([&value] { ++value; })));
        if (i % 50 == 0) own.ref().synchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  shared.ref().synchronize();
  EXPECT_EQ(value, kThreads * kEach);
}

TEST_P(StreamContract, Device_Copies_NameOneMachine) {
  Stream stream(device_);
  EXPECT_EQ(stream.ref().device(), device_);
  EXPECT_NE(make_device(GetParam()), device_);
  EXPECT_EQ(device_.name(), "host");
  EXPECT_EQ(device_.kind(), DeviceKind::host);
  const std::int64_t before = device_.now_ns();
  EXPECT_TRUE(before >= 0 && device_.now_ns() >= before);
}

}  // namespace
}  // namespace headroom::test
