#include "collectives/rendezvous.hpp"

#include <gtest/gtest.h>

namespace headroom::testing {
namespace {

using namespace std::chrono_literals;
using detail::Rendezvous;

/// Two ranks that have arrived at the first gate, so long ago that their deadline for it is over.
class RendezvousDeadline : public ::testing::Test {
 protected:
  RendezvousDeadline() {
    for (Rendezvous::Visit* visit : {&first, &second}) {
      visit->lane = detail::Lane::host_of(detail::CommunicatorName::control, 0);
      visit->group = detail::make_group(0, 1, 2, visit == &first ? 0 : 1);
      meeting.arrive(*visit, {.signature = {.sequence = 1, .numel = 1}, .send = nullptr, .recv = nullptr});
      visit->since -= 2 * kDeadline;
    }
  }

  static constexpr auto kDeadline = 1h;
  Rendezvous meeting{2, kDeadline};
  Rendezvous::Visit first, second;
};

TEST_F(RendezvousDeadline, OfTheNextGate_StartsWhenTheRankReachesIt) {
  ASSERT_TRUE(meeting.pass(first, false)) << "the gate is open, however late";
  meeting.leave(first);
  EXPECT_FALSE(meeting.pass(first, true)) << "the second rank has all its time to copy";
  ASSERT_TRUE(meeting.pass(second, false));
  meeting.leave(second);
  EXPECT_TRUE(meeting.pass(first, true));
  EXPECT_TRUE(meeting.pass(second, true));
}

TEST_F(RendezvousDeadline, OfTheNextGate_IsKept) {
  ASSERT_TRUE(meeting.pass(first, false));
  meeting.leave(first);
  first.since -= 2 * kDeadline;
  EXPECT_THROW(static_cast<void>(meeting.pass(first, true)), DeadlineExceeded);
}

}  // namespace
}  // namespace headroom::testing
