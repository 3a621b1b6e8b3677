#pragma once

#include "report/comparison.hpp"

#include <optional>
#include <string>
#include <vector>

namespace headroom::bench {

/// One arm as it ended: its figures, and the report of its last round (null where it cannot run).
struct ArmResult {
  std::string label;  ///< "backward-prefetch=pre"
  ArmFigures figures;
  Json report;
};

struct AbResult {
  ArmResult a, b;
  std::vector<std::string> changed;
  Equivalence equivalence = Equivalence::bitwise;
  std::optional<std::string> difference;
  int rounds = 0;                  ///< Measured.
  std::vector<std::string> order;  ///< "ab" or "ba", a round.
  std::vector<std::string> notes;  ///< What the reader must know to believe the verdict.
};

/// The object that CONTRACT section 2 gives for `ab`.
[[nodiscard]] Json ab_json(const AbResult& result);
/// Both arms side by side; the last line is the verdict.
[[nodiscard]] std::string ab_table(const AbResult& result);

}  // namespace headroom::bench
