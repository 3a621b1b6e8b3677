#pragma once

#include "options/config.hpp"
#include "report/rank_json.hpp"
#include "report/statistics.hpp"
#include "run/rank_record.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom::bench {

/// What one run of an arm computed, to be compared with another's.
struct Outcome {
  std::vector<StepRecord> steps;
  std::uint32_t parameters_crc32c = 0;
};

/// `bitwise`: every loss, norm and the parameters' checksum must be equal. `tolerance`: losses within a relative bound.
enum class Equivalence : std::uint8_t { bitwise, tolerance };
inline constexpr double kLossTolerance = 1e-3;      ///< Of f32 sums in another order over tens of steps.
inline constexpr double kBf16LossTolerance = 1e-2;  ///< Where an arm sends bf16, which has 8 bits of mantissa.

[[nodiscard]] const char* name_of(Equivalence equivalence) noexcept;
/// Keys that change rounding make it `tolerance`: shard does, but for full_shard against shard_grad_op.
[[nodiscard]] Equivalence equivalence_of(const std::vector<std::string>& changed_keys, const Config& a,
                                         const Config& b);
[[nodiscard]] double loss_tolerance_of(const Config& a, const Config& b) noexcept;
/// What differs first, in words; none where the arms are equivalent.
[[nodiscard]] std::optional<std::string> first_difference(const Outcome& a, const Outcome& b, Equivalence equivalence,
                                                          double loss_tolerance = kLossTolerance);

/// One arm over its measured rounds: one figure a round, by the name of its ratio.
struct ArmFigures {
  std::map<std::string, std::vector<double>> rounds;
  std::vector<double> step_seconds;       ///< Of the measured steps of all rounds.
  std::optional<std::string> infeasible;  ///< Why the arm cannot run.

  void add(const Json& report, const std::vector<StepRecord>& steps);
};

/// The names under "ratio", in the order of CONTRACT section 2.
[[nodiscard]] const std::vector<std::string>& ratio_names();
/// b/a; none where a round's figure is 0 or missing.
[[nodiscard]] std::optional<Estimate> ratio_of(const ArmFigures& a, const ArmFigures& b, const std::string& name);

struct Verdict {
  std::string verdict, because;
};
/// By seconds_per_step alone, after what forbids a verdict: an arm that cannot run, arms that are not equivalent.
[[nodiscard]] Verdict decide(const ArmFigures& a, const ArmFigures& b, const std::optional<std::string>& difference);

}  // namespace headroom::bench
