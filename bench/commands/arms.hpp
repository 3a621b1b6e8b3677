#pragma once

#include "options/command_line.hpp"

#include <string>
#include <vector>

namespace headroom::bench {

/// Both arms of `ab`: two configurations, and the keys whose values differ between them.
struct Arms {
  Config a, b;
  std::string a_label, b_label;  ///< As the user gave them; "the options as given" for an empty one.
  std::vector<std::string> changed;
  std::vector<std::string> notes;
};

/// Throws: InvalidInput where more than one key differs without --allow-many, or one that an arm cannot have to itself:
/// kSharedByArms.
[[nodiscard]] Arms make_arms(const CommandLine& line);

}  // namespace headroom::bench
