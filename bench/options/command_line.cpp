#include "options/command_line.hpp"

#include "options/help_texts.hpp"
#include "options/input_error.hpp"
#include "options/option_table.hpp"
#include "options/values.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>

namespace headroom::bench {
namespace {

/// What CLI11 found: texts, which the options' table reads.
struct Given {
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, bool> flags;
};

/// The options that a command has beside those of the table.
struct Extra {
  std::string a, b, rounds = "7", units;
  std::string file, limit, policy, replays = "3";
  std::string from = "64KiB", to = "16MiB", dtype = "f32", repeats = "9";
  std::string events, at = "peak", clock = "issue", steps;
  bool allow_many = false, first = false, show_units = false;
};

std::string ab_footer() {
  std::string text = kAbExample;
  for (const std::string_view key : kSharedByArms) text.append(key == kSharedByArms.front() ? "" : ", ").append(key);
  return text + ".";
}

std::string default_of(const Option& option) {
  const nlohmann::ordered_json value = option.get(make_config({}));
  if (value.is_null() || value.is_boolean() || value.is_array()) return "";
  return " [" + (value.is_string() ? value.get<std::string>() : value.dump()) + "]";
}

/// Those of the table's options that a command has.
enum class Part : std::uint8_t { all, without_outputs, machine, inspected, replayed };

/// Of the outputs, what commands have that read a recording: `inspect` all of them, `replay` the first two.
constexpr std::array<std::string_view, 6> kViews{"json", "log-level", "report", "png", "snapshot", "trace"};

bool has(Part part, const Option& option) {
  const std::string_view key = option.key, group = option.group;
  if (part == Part::without_outputs) return !option.writes;
  const auto view = std::ranges::find(kViews, key);
  if (part == Part::inspected) return view != kViews.end();
  if (part == Part::replayed) return view < kViews.begin() + 2;
  return part == Part::all || group == "Machine" || key == "json" || key == "log-level";
}

void add_table(CLI::App& command, Part part, Given& given) {
  for (const Option& option : option_table()) {
    if (!has(part, option)) continue;
    const std::string name = std::string("--") + option.key;
    const bool has_own_default =
        std::string_view(option.key) == "device" || std::string_view(option.key) == "positions";
    const std::string help = option.help + (has_own_default ? "" : default_of(option));
    CLI::Option* added = nullptr;
    if (option.kind == Option::Kind::flag) {
      added = command.add_flag(name, given.flags[option.key], help);
    } else {
      added = command.add_option(name, given.values[option.key], help)->type_name(option.value_name);
      added->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    added->group(option.group);
  }
}

CLI::Option* take_last(CLI::Option* option) { return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast); }

void add_commands(CLI::App& app, Given& given, Extra& extra) {
  CLI::App* train = app.add_subcommand("train", "trains a model and reports on it")->footer(kTrainExample);
  add_table(*train, Part::all, given);

  CLI::App* ab = app.add_subcommand("ab", "compares two settings of one decision")->footer(ab_footer());
  take_last(ab->add_option("--a", extra.a, "settings of arm a, as K=V K=V ..."))->type_name("TEXT");
  take_last(ab->add_option("--b", extra.b, "settings of arm b"))->type_name("TEXT");
  take_last(ab->add_option("--rounds", extra.rounds, "paired rounds"))->type_name("N")->capture_default_str();
  ab->add_flag("--allow-many", extra.allow_many, "the arms may differ in more than one option");
  add_table(*ab, Part::all, given);

  CLI::App* schedule = app.add_subcommand("schedule", "prints the schedule of a step")->footer(kScheduleExample);
  take_last(schedule->add_option("--units", extra.units, "of that many equal units, not of the workload"))
      ->type_name("N");
  schedule->add_flag("--first", extra.first, "of the first step");
  add_table(*schedule, Part::without_outputs, given);

  CLI::App* comm = app.add_subcommand("comm", "measures and verifies the collectives")->footer(kCommExample);
  take_last(comm->add_option("--from", extra.from, "smallest size"))->type_name("SIZE")->capture_default_str();
  take_last(comm->add_option("--to", extra.to, "largest size"))->type_name("SIZE")->capture_default_str();
  take_last(comm->add_option("--dtype", extra.dtype, "f32, bf16"))->type_name("NAME")->capture_default_str();
  take_last(comm->add_option("--repeats", extra.repeats, "of which the median counts"))
      ->type_name("N")
      ->capture_default_str();
  add_table(*comm, Part::machine, given);

  CLI::App* inspect =
      app.add_subcommand("inspect", "shows memory at an instant of a recording")->footer(kInspectExample);
  inspect->add_option("EVENTS", extra.events, "what a run wrote with --events")->type_name("")->required();
  take_last(inspect->add_option("--at", extra.at, "an event's number, peak, or the highest instant of a visit"))
      ->type_name("EVENT|peak|STEP/PHASE/UNIT")
      ->capture_default_str();
  take_last(inspect->add_option("--clock", extra.clock, "issue (as the host asked) or device (as the streams ran)"))
      ->type_name("NAME")
      ->capture_default_str();
  take_last(inspect->add_option("--steps", extra.steps, "of which --snapshot tells, after what was there before them"))
      ->type_name("A..B");
  inspect->add_flag("--units", extra.show_units, "each unit's lifetimes in that step too");
  add_table(*inspect, Part::inspected, given);

  CLI::App* replay = app.add_subcommand("replay", "replays a recording's allocations")->footer(kReplayExample);
  take_last(replay->add_option("FILE", extra.file, "what a run wrote with --events"))->type_name("")->required();
  take_last(replay->add_option("--limit", extra.limit, "of reserved bytes; without it, as recorded"))
      ->type_name("SIZE");
  take_last(replay->add_option("--policy", extra.policy, "ours, native, expandable; without it, all"))
      ->type_name("NAME");
  take_last(replay->add_option("--repeats", extra.replays, "timed runs, of which the fastest counts"))
      ->type_name("N")
      ->capture_default_str();
  add_table(*replay, Part::replayed, given);

  for (CLI::App* command : {train, ab, schedule, comm, inspect, replay}) command->allow_extras();
  app.require_subcommand(0, 1);
  app.allow_extras();
}

std::string version_text() {
  std::string devices = "host";
  if (Device::count(DeviceKind::cuda) > 0) devices += ", cuda";
  return std::string("headroom ") + HEADROOM_VERSION + "\ndevices: " + devices;
}

void refuse_extras(const CLI::App& app) {
  const CLI::App* command = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  const std::string help = command == nullptr ? "headroom --help" : "headroom " + command->get_name() + " --help";
  const std::vector<std::string> extras = command == nullptr ? app.remaining() : command->remaining();
  const std::vector<std::string> before = app.remaining();
  if (command != nullptr && !before.empty())
    throw bad_input("command line", "a command first", in_quotes(before.front()), "Options follow the command.");
  if (!extras.empty() && extras.front().starts_with("-"))
    throw bad_input(extras.front().substr(0, extras.front().find('=')), "an option that exists", "an unknown one",
                    "See `" + help + "`.");
  if (command != nullptr && !extras.empty())
    throw bad_input("command line", "options only", in_quotes(extras.front()), "See `" + help + "`.");
  if (command == nullptr)
    throw bad_input("command line", "train, ab, schedule, comm, inspect or replay",
                    extras.empty() ? "no command" : in_quotes(extras.front()), "See `headroom --help`.");
}

std::vector<Setting> settings_of(const Given& given) {
  std::vector<Setting> settings;
  for (const auto& [key, values] : given.values)
    for (const std::string& value : values) settings.push_back({key, value});
  for (const auto& [key, value] : given.flags)
    if (value) settings.push_back({key, "true"});
  return settings;
}

CommOptions comm_options(const Extra& extra) {
  CommOptions comm;
  comm.from_bytes = parse_size("from", extra.from);
  comm.to_bytes = parse_size("to", extra.to);
  comm.dtype = parse_choice("dtype", extra.dtype, {"f32", "bf16"}) == 0 ? DType::f32 : DType::bf16;
  comm.repeats = static_cast<int>(parse_whole("repeats", extra.repeats, 1, 100'000));
  constexpr std::size_t kLargest = std::size_t{1} << 34;
  if (comm.to_bytes < comm.from_bytes || comm.to_bytes > kLargest)
    throw bad_input("--to", "a size from --from " + std::to_string(comm.from_bytes) + " bytes to 16GiB",
                    std::to_string(comm.to_bytes) + " bytes");
  return comm;
}

ReplayCommandOptions replay_options(const Extra& extra) {
  const std::vector<std::string> policies{"ours", "native", "expandable"};
  ReplayCommandOptions replay;
  replay.file = parse_path("FILE", extra.file);
  if (!extra.policy.empty()) replay.policy = policies[parse_choice("policy", extra.policy, policies)];
  if (!extra.limit.empty()) replay.limit_bytes = parse_size("limit", extra.limit);
  replay.repeats = static_cast<int>(parse_whole("repeats", extra.replays, 1, 1000));
  return replay;
}

void fill(const Given& given, const Extra& extra, CommandLine& line) {
  std::vector<std::string> unit_names;
  if (line.command == Command::schedule) {
    line.schedule.first = extra.first;
    if (!extra.units.empty()) line.schedule.units = static_cast<int>(parse_whole("units", extra.units, 1, 10'000));
    for (int unit = 0; unit < line.schedule.units; ++unit) unit_names.push_back(std::to_string(unit));
  }
  line.config = make_config(settings_of(given), unit_names);
  if (line.command == Command::comm) line.comm = comm_options(extra);
  if (line.command == Command::inspect) {
    line.inspect = {extra.events, extra.at, parse_choice("clock", extra.clock, {"issue", "device"}) == 1,
                    extra.show_units, extra.steps.empty() ? StepRange{} : parse_steps("steps", extra.steps)};
  }
  if (line.command == Command::replay) line.replay = replay_options(extra);
  if (line.command != Command::ab) return;
  line.ab = {parse_settings("a", extra.a), parse_settings("b", extra.b),
             static_cast<int>(parse_whole("rounds", extra.rounds, 1, 100'000)), extra.allow_many};
  static_cast<void>(line.config.with(line.ab.a));
  static_cast<void>(line.config.with(line.ab.b));
}

Command command_named(const std::string& name) {
  for (const Command command : {Command::train, Command::ab, Command::comm, Command::inspect, Command::replay})
    if (name == name_of(command)) return command;
  return Command::schedule;
}

}  // namespace

const char* name_of(Command command) noexcept {
  switch (command) {
    case Command::train: return "train";
    case Command::ab: return "ab";
    case Command::schedule: return "schedule";
    case Command::comm: return "comm";
    case Command::inspect: return "inspect";
    case Command::replay: return "replay";
    case Command::show_text: break;
  }
  return "help";
}

CommandLine parse_command_line(const std::vector<std::string>& argv) {
  CommandLine line;
  line.argv = argv;
  Given given;
  Extra extra;
  CLI::App app("Sharded training inside a live-memory budget: trains, compares and explains.", "headroom");
  app.footer(kExamples);
  app.set_version_flag("--version", version_text());
  add_commands(app, given, extra);
  std::vector<std::string> reversed(argv.rbegin(), argv.rend());
  if (!reversed.empty()) reversed.pop_back();
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& asked) {
    std::ostringstream out;
    app.exit(asked, out, out);
    line.text = out.str();
    return line;
  } catch (const CLI::ParseError& error) {
    throw bad_input("command line", "options as `headroom --help` lists them", error.what());
  }
  refuse_extras(app);
  line.command = command_named(app.get_subcommands().front()->get_name());
  fill(given, extra, line);
  return line;
}

nlohmann::ordered_json to_json(const CommandLine& line) {
  const auto texts = [](const std::vector<Setting>& settings) {
    nlohmann::ordered_json result = nlohmann::ordered_json::array();
    for (const Setting& setting : settings) result.push_back(setting.key + "=" + setting.value);
    return result;
  };
  nlohmann::ordered_json json{{"command", name_of(line.command)}};
  if (line.command == Command::ab)
    json.update({{"a", texts(line.ab.a)},
                 {"b", texts(line.ab.b)},
                 {"rounds", line.ab.rounds},
                 {"allow-many", line.ab.allow_many}});
  if (line.command == Command::schedule) json.update({{"units", line.schedule.units}, {"first", line.schedule.first}});
  if (line.command == Command::comm)
    json.update({{"from", line.comm.from_bytes},
                 {"to", line.comm.to_bytes},
                 {"dtype", name_of(line.comm.dtype)},
                 {"repeats", line.comm.repeats}});
  if (line.command == Command::inspect)
    json.update({{"events", line.inspect.path},
                 {"at", line.inspect.at},
                 {"device-clock", line.inspect.device_clock},
                 {"units", line.inspect.units},
                 {"steps", {line.inspect.steps.first, line.inspect.steps.last}}});
  if (line.command == Command::replay)
    json.update({{"file", line.replay.file},
                 {"policy", line.replay.policy},
                 {"limit", line.replay.limit_bytes},
                 {"repeats", line.replay.repeats}});
  json.update(to_json(line.config));
  return json;
}

}  // namespace headroom::bench
