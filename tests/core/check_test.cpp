#include "runtime/core/check.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace headroom::detail {
namespace {

static_assert(align_up<std::size_t>(0, 8) == 0);
static_assert(align_up<std::size_t>(1, 8) == 8);
static_assert(align_up<std::size_t>(8, 8) == 8);
static_assert(align_up<std::size_t>(13, 6) == 18);
static_assert(div_ceil(7, 3) == 3 && div_ceil(6, 3) == 2 && div_ceil(0, 3) == 0);
static_assert(div_exact(12, 4) == 3);
static_assert(narrow<std::uint8_t>(255) == 255);

TEST(Expect, TrueCondition_DoesNotEvaluateItsMessage) {
  int evaluated = 0;
  const auto message = [&evaluated] { return ++evaluated, std::string("never"); };
  HEADROOM_EXPECT(1 + 1 == 2, message());
  EXPECT_EQ(evaluated, 0);
}

TEST(Expect, FalseCondition_ThrowsWithMessageFileAndCondition) {
  try {
    HEADROOM_EXPECT(1 + 1 == 3, "arithmetic holds");
    FAIL() << "nothing was thrown";
  } catch (const std::logic_error& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("arithmetic holds (check_test.cpp:"), 0U) << what;
    EXPECT_NE(what.find("expected 1 + 1 == 3"), std::string::npos) << what;
  }
}

TEST(AlignUp, BeyondTheType_Throws) {
  EXPECT_THROW(static_cast<void>(align_up(std::numeric_limits<std::size_t>::max(), 4096)), std::overflow_error);
}

TEST(DivExact, Remainder_Throws) {
  EXPECT_THROW(static_cast<void>(div_exact(13, 4)), std::logic_error);
  EXPECT_THROW(static_cast<void>(div_exact(13, 0)), std::logic_error);
}

TEST(Narrow, ValueOutsideTheType_Throws) {
  EXPECT_THROW(static_cast<void>(narrow<std::uint8_t>(256)), std::overflow_error);
  EXPECT_THROW(static_cast<void>(narrow<std::uint32_t>(-1)), std::overflow_error);
  EXPECT_THROW(static_cast<void>(narrow<std::int32_t>(std::size_t{1} << 31U)), std::overflow_error);
}

}  // namespace
}  // namespace headroom::detail
