#pragma once

#include "options/config.hpp"
#include "options/values.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::bench {

enum class Command : std::uint8_t { show_text, train, ab, schedule, comm, inspect, replay };

struct AbOptions {
  std::vector<Setting> a, b;
  int rounds = 7;
  bool allow_many = false;
};

struct ScheduleOptions {
  int units = 0;  ///< 0: the units of the workload.
  bool first = false;
};

struct CommOptions {
  std::size_t from_bytes = std::size_t{64} << 10, to_bytes = std::size_t{16} << 20;  ///< Of the larger buffer.
  DType dtype = DType::f32;
  int repeats = 9;
};

struct InspectOptions {
  std::string path;         ///< Of the recording.
  std::string at = "peak";  ///< The instant: see InstantChoice.
  bool device_clock = false, units = false;
  StepRange steps;  ///< Of the snapshot.
};

struct ReplayCommandOptions {
  std::string file, policy;     ///< Policy: empty is all.
  std::size_t limit_bytes = 0;  ///< 0: as recorded.
  int repeats = 3;
};

/// What the user asked for. `config` is the base of both arms of `ab`.
struct CommandLine {
  Command command = Command::show_text;
  std::string text;  ///< Of show_text (--help, --version): what to print on stdout.
  std::vector<std::string> argv;
  Config config;
  AbOptions ab;
  ScheduleOptions schedule;
  CommOptions comm;
  InspectOptions inspect;
  ReplayCommandOptions replay;
};

[[nodiscard]] const char* name_of(Command command) noexcept;

/// Pure but for reading --init's config.json. Throws: InvalidInput.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& argv);

/// The command and all its options, for the agreement between ranks.
[[nodiscard]] nlohmann::ordered_json to_json(const CommandLine& line);

}  // namespace headroom::bench
