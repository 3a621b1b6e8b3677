#include "runtime/core/stream_order.hpp"

#include <gtest/gtest.h>

#include "runtime/core/wait_log.hpp"

namespace headroom::detail {
namespace {

StreamOrder order_of(StreamId streams) {
  StreamOrder order;
  for (StreamId i = 0; i < streams; ++i) order.add_stream();
  return order;
}

TEST(StreamOrder, WithoutWaits_KnowsNothing) {
  const StreamOrder order = order_of(2);
  EXPECT_EQ(order.knows(0, 1), 0U);
}

TEST(StreamOrder, WaitForOlderTicket_KeepsTheNewer) {
  StreamOrder order = order_of(2);
  order.add_wait(0, 1, 1, 9);
  order.add_wait(0, 2, 1, 4);
  EXPECT_EQ(order.knows(0, 1), 9U);
}

TEST(StreamOrder, Wait_LearnsTheProducersRowAtItsTicket) {
  StreamOrder order = order_of(4);
  order.add_wait(1, 3, 2, 5);  // from its ticket 3 on, 1 is after 2:5
  order.add_wait(1, 7, 3, 6);  // from its ticket 7 on, also after 3:6
  order.add_wait(0, 1, 1, 2);
  EXPECT_EQ(order.knows(0, 2), 0U);
  order.add_wait(0, 2, 1, 6);
  EXPECT_EQ(order.knows(0, 2), 5U);
  EXPECT_EQ(order.knows(0, 3), 0U);
  order.add_wait(0, 3, 1, 7);
  EXPECT_EQ(order.knows(0, 3), 6U);
}

TEST(StreamOrder, WaitForATicketOlderThanTheHistory_LearnsOnlyThatTicket) {
  StreamOrder order = order_of(3);
  for (Ticket ticket = 1; ticket <= StreamOrder::kHistory + 10; ++ticket) order.add_wait(1, ticket, 2, ticket);
  order.add_wait(0, 1, 1, 10);  // the rows at tickets 1..10 are gone
  EXPECT_EQ(order.knows(0, 1), 10U);
  EXPECT_EQ(order.knows(0, 2), 0U);
  order.add_wait(0, 2, 1, 11);  // the oldest that is left
  EXPECT_EQ(order.knows(0, 2), 11U);
}

TEST(StreamOrder, ForgottenStream_CanStillBeWaitedFor) {
  StreamOrder order = order_of(3);
  order.add_wait(1, 1, 2, 5);
  order.forget(1);
  order.add_wait(0, 1, 1, 1);
  EXPECT_EQ(order.knows(0, 1), 1U);
  EXPECT_EQ(order.knows(0, 2), 0U);
  EXPECT_EQ(order.knows(1, 2), 0U);
}

TEST(StreamOrder, StreamAddedLater_IsUnknownUntilWaitedFor) {
  StreamOrder order = order_of(2);
  order.add_wait(0, 1, 1, 3);
  order.add_stream();
  EXPECT_EQ(order.knows(0, 2), 0U);
  order.add_wait(0, 2, 2, 1);
  EXPECT_EQ(order.knows(0, 2), 1U);
}

TEST(StreamOrder, HostWait_SeesWhatTheTicketComesAfter) {
  StreamOrder order = order_of(3);
  order.add_wait(1, 3, 2, 5);
  EXPECT_EQ(order.seen(1), 0U);
  order.add_host_wait(1, 2);
  EXPECT_EQ(order.seen(1), 2U);
  EXPECT_EQ(order.seen(2), 0U);
  order.add_host_wait(1, 3);
  EXPECT_EQ(order.seen(2), 5U);
  order.add_host_wait(1, 1);
  EXPECT_EQ(order.seen(1), 3U);
}

TEST(WaitLog, Since_AfterMoreThanItKeeps_SaysWhatIsLost) {
  WaitLog log;
  std::vector<IssuedWait> waits;
  EXPECT_EQ(log.since(0, waits), 0U);
  const std::uint64_t empty = log.version();
  log.note_end();
  EXPECT_NE(log.version(), empty);
  for (Ticket ticket = 1; ticket <= WaitLog::kKept + 3; ++ticket) log.add({0, ticket, 1, ticket});
  EXPECT_EQ(log.since(5, waits), 5U);
  EXPECT_EQ(waits.size(), WaitLog::kKept - 2);
  EXPECT_EQ(waits.front().ticket, 6U);
  waits.clear();
  EXPECT_EQ(log.since(1, waits), 3U) << "two are lost";
  EXPECT_EQ(waits.size(), WaitLog::kKept);
}

}  // namespace
}  // namespace headroom::detail
