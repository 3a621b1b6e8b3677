// What happens to a stream, and to those that wait for it, when an operation throws.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "core/executors.hpp"

namespace headroom::test {
namespace {

class StreamFailure : public StreamTest {
 protected:
  static std::string what_synchronize_throws(StreamRef stream) {
    try {
      stream.synchronize();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  static Operation throwing(const std::string& what) {
    return host_operation([what] { throw std::runtime_error(what); }, "throwing");
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, StreamFailure, every_executor(), case_name);

TEST_P(StreamFailure, Synchronize_AfterFailure_RethrowsOnce) {
  Stream stream(device_);
  EXPECT_FALSE(stream.ref().failed());
  stream.ref().enqueue(throwing("lost"));
  EXPECT_EQ(what_synchronize_throws(stream), "lost");
  EXPECT_EQ(what_synchronize_throws(stream), "");
  EXPECT_TRUE(stream.ref().failed());
}

TEST_P(StreamFailure, LaterWork_IsSkippedAndItsTicketsComplete) {
  Stream stream(device_);
  std::atomic<int> ran{0};
  stream.ref().enqueue(throwing("lost"));
  const Ticket queued = stream.ref().enqueue(host_operation([&ran] { ++ran; }));
  EXPECT_EQ(what_synchronize_throws(stream), "lost");
  const Ticket later = stream.ref().enqueue(host_operation([&ran] { ++ran; }));
  stream.ref().synchronize();
  EXPECT_TRUE(stream.ref().complete(queued));
  EXPECT_TRUE(stream.ref().complete(later));
  EXPECT_EQ(ran, 0);
  const std::vector<OperationRecord> records = device_.trace().operations();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].kind, OperationRecord::Kind::work);
  EXPECT_EQ(records[1].kind, OperationRecord::Kind::skipped);
  EXPECT_EQ(records[2].kind, OperationRecord::Kind::skipped);
}

TEST_P(StreamFailure, SkippedOperation_IsDestroyedBeforeItsTicketCompletes) {
  Stream stream(device_);
  const auto owned = std::make_shared<int>(1);
  stream.ref().enqueue(throwing("lost"));
  stream.ref().enqueue(host_operation([owned] { static_cast<void>(*owned); }));
  EXPECT_EQ(what_synchronize_throws(stream), "lost");
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(StreamFailure, FirstOfSeveralErrors_IsTheOneKept) {
  Stream stream(device_);
  stream.ref().enqueue(throwing("first"));
  stream.ref().enqueue(throwing("second"));
  EXPECT_EQ(what_synchronize_throws(stream), "first");
  EXPECT_EQ(what_synchronize_throws(stream), "");
}

TEST_P(StreamFailure, SynchronizeBeforeTheError_DoesNotThrow) {
  Stream stream(device_);
  const Ticket before = stream.ref().enqueue(host_operation([] {}));
  stream.ref().enqueue(throwing("lost"));
  EXPECT_NO_THROW(stream.ref().synchronize(before));
  EXPECT_EQ(what_synchronize_throws(stream), "lost");
}

TEST_P(StreamFailure, OtherStreams_WaitingForAFailedOne_GoOn) {
  Stream failing(device_);
  Stream other(device_);
  std::atomic<int> ran{0};
  other.ref().wait(failing, failing.ref().enqueue(throwing("lost")));
  other.ref().enqueue(host_operation([&ran] { ++ran; }));
  EXPECT_NO_THROW(other.ref().synchronize());
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(other.ref().failed());
  EXPECT_TRUE(failing.ref().failed());
  EXPECT_EQ(what_synchronize_throws(failing), "lost");
}

TEST_P(StreamFailure, WaitsOfAFailedStream_StillOrderThoseBehindIt) {
  Stream producer(device_);
  Stream failing(device_);
  Stream consumer(device_);
  int value = 0;  // not atomic: consumer is ordered after producer only through the failed stream
  failing.ref().enqueue(throwing("lost"));
  failing.ref().wait(producer, producer.ref().enqueue(host_operation([&value] { value = 1; })));
  const Ticket skipped = failing.ref().enqueue(host_operation([] {}));
  consumer.ref().wait(failing, skipped);
  EXPECT_EQ(consumer.ref().knows(producer), 1U);
  consumer.ref().enqueue(host_operation([&value] { EXPECT_EQ(value, 1); }));
  consumer.ref().synchronize();
  EXPECT_EQ(what_synchronize_throws(failing), "lost");
}

TEST_P(StreamFailure, ThrowingPoll_PoisonsLikeABody) {
  Stream stream(device_);
  int polls = 0;
  stream.ref().enqueue(poll_operation([&polls]() -> Progress {
    if (++polls < 3) return Progress::blocked;
    throw std::runtime_error("lost peer");
  }));
  EXPECT_EQ(what_synchronize_throws(stream), "lost peer");
  EXPECT_EQ(polls, 3);
  EXPECT_TRUE(stream.ref().failed());
}

TEST_P(StreamFailure, ThrowingPause_PoisonsLikeABody) {
  Stream stream(device_);
  Operation operation = poll_operation([] { return Progress::blocked; });
  operation.pause = [](std::chrono::microseconds) { throw std::runtime_error("deadline"); };
  stream.ref().enqueue(std::move(operation));
  EXPECT_EQ(what_synchronize_throws(stream), "deadline");
}

TEST_P(StreamFailure, EventSynchronize_BehindTheError_Rethrows) {
  Stream stream(device_);
  Event event;
  stream.ref().enqueue(throwing("lost"));
  event.record(stream);
  EXPECT_THROW(event.synchronize(), std::runtime_error);
  EXPECT_NO_THROW(event.synchronize());
}

TEST_P(StreamFailure, Destructor_WithUncollectedError_LogsIt) {
  std::ostringstream text;
  const auto previous = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  {
    Stream stream(device_, {StreamRole::gather, "gather"});
    stream.ref().enqueue(throwing("lost for good"));
  }
  spdlog::set_default_logger(previous);
  EXPECT_NE(text.str().find("stream gather"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("lost for good"), std::string::npos) << text.str();
}

}  // namespace
}  // namespace headroom::test
