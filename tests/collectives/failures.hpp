#pragma once

#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace headroom::testing {

/// The text of the Failed that `act` throws.
template <class Failed, class Act>
std::string failure_of(const Act& act) {
  try {
    act();
  } catch (const Failed& failed) {
    EXPECT_EQ(failed.damage(), Damage::communicator);
    return failed.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error: " << other.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline bool names(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void expect_names(const std::string& text, const std::string& part) {
  EXPECT_TRUE(names(text, part)) << "'" << part << "' is not in: " << text;
}

}  // namespace headroom::testing
