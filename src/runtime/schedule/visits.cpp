#include "runtime/schedule/visits.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace headroom::detail {
namespace {

constexpr std::size_t kMostVisits = 2'000'000;                // In a step: about 300 MiB of schedule.
constexpr std::size_t kMostUnitBytes = std::size_t{1} << 40;  // So that no sum of buffers overflows.

void check_name(const ScheduleUnit& unit, std::set<std::string_view>& seen) {
  const auto spoils_text = [](unsigned char c) { return std::isspace(c) != 0 || std::iscntrl(c) != 0 || c == '#'; };
  if (unit.name.empty()) throw InvalidInput("schedule: a unit has no name: each needs one, it is what the text shows");
  if (std::any_of(unit.name.begin(), unit.name.end(), spoils_text)) {
    throw InvalidInput("schedule: unit name '" + unit.name + "': expected no spaces, control characters or '#'");
  }
  if (!seen.insert(unit.name).second) throw InvalidInput("schedule: two units are named '" + unit.name + "'");
}

void check_sizes(const ScheduleUnit& unit) {
  const std::size_t largest = std::max(unit.parameter_bytes, unit.gradient_bytes);
  if (largest > kMostUnitBytes) {
    throw InvalidInput("schedule: unit '" + unit.name + "' has a buffer of " + std::to_string(largest) +
                       " bytes: expected at most 1 TiB");
  }
}

void check_path(const PlanInput& input, const std::vector<int>& path, const char* name) {
  for (const int unit : path) {
    if (unit < 0 || index_of(unit) >= input.units.size()) {
      throw InvalidInput(std::string("schedule: the ") + name + " path visits unit " + std::to_string(unit) +
                         ": expected 0 to " + std::to_string(input.units.size()) + " - 1");
    }
  }
}

}  // namespace

std::vector<Visit> visits_of(const PlanInput& input, Phase phase) {
  const std::vector<int>& path = phase == Phase::forward ? input.forward : input.backward;
  std::vector<Visit> visits;
  visits.reserve(path.size());
  std::vector<int> times(input.units.size(), 0);
  for (const int unit : path) visits.push_back({unit, phase, times[index_of(unit)]++, false});
  for (Visit& visit : visits) visit.last = visit.repeat + 1 == times[index_of(visit.unit)];
  return visits;
}

void check_input(const PlanInput& input) {
  if (input.units.empty()) throw InvalidInput("schedule: there are no units: expected at least one");
  if (input.micro_batches < 1) {
    throw InvalidInput("schedule: " + std::to_string(input.micro_batches) + " micro-batches: expected at least 1");
  }
  if (input.world < 1) throw InvalidInput("schedule: world " + std::to_string(input.world) + ": expected at least 1");
  std::set<std::string_view> names;
  for (const ScheduleUnit& unit : input.units) check_name(unit, names);
  for (const ScheduleUnit& unit : input.units) check_sizes(unit);
  const std::size_t visits = input.forward.size() + input.backward.size();
  if (visits > kMostVisits / static_cast<std::size_t>(input.micro_batches)) {
    throw InvalidInput("schedule: " + std::to_string(visits) + " visits in each of " +
                       std::to_string(input.micro_batches) + " micro-batches: expected at most " +
                       std::to_string(kMostVisits) + " visits in a step");
  }
  check_path(input, input.forward, "forward");
  check_path(input, input.backward, "backward");
}

}  // namespace headroom::detail
