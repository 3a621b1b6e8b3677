#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace headroom {
namespace {

static_assert(Damage::none < Damage::step && Damage::step < Damage::communicator &&
              Damage::communicator < Damage::device);
static_assert(Fault::none < Fault::allocation && Fault::allocation < Fault::bad_input &&
              Fault::bad_input < Fault::exception && Fault::exception < Fault::order && Fault::order < Fault::left);
static_assert(!std::is_base_of_v<std::logic_error, Error>);

template <class Thrown>
Damage damage_caught(const Thrown& error) {
  try {
    throw error;
  } catch (const Error& caught) {
    EXPECT_STREQ(caught.what(), error.what());
    return caught.damage();
  }
}

TEST(Error, EveryKind_CarriesItsDamage) {
  EXPECT_EQ(damage_caught(InvalidInput("x")), Damage::none);
  EXPECT_EQ(damage_caught(InputOutputError("x")), Damage::none);
  EXPECT_EQ(damage_caught(OutOfMemory("x", {})), Damage::none);
  EXPECT_EQ(damage_caught(StepAborted("x", Fault::order, 3)), Damage::step);
  EXPECT_EQ(damage_caught(CollectiveMismatch("x")), Damage::communicator);
  EXPECT_EQ(damage_caught(DeadlineExceeded("x")), Damage::communicator);
  EXPECT_EQ(damage_caught(CommunicatorError("x")), Damage::communicator);
  EXPECT_EQ(damage_caught(DeviceError(Damage::device, "x")), Damage::device);
  EXPECT_EQ(damage_caught(TornState("x")), Damage::device);
}

TEST(Error, Details_AreKept) {
  OutOfMemory::Details details;
  details.requested_bytes = 7;
  details.limit_bytes = 9;
  EXPECT_EQ(OutOfMemory("x", details).details().requested_bytes, 7U);
  EXPECT_EQ(OutOfMemory("x", details).details().limit_bytes, 9U);
  EXPECT_EQ(StepAborted("x", Fault::left, 3).fault(), Fault::left);
  EXPECT_EQ(StepAborted("x", Fault::left, 3).rank(), 3);
}

}  // namespace
}  // namespace headroom
