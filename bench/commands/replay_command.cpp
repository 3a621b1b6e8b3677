#include "commands/commands.hpp"
#include "io/outputs.hpp"
#include "options/json_text.hpp"
#include "replay/replay.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdio>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRegionNames[] = {"residents", "communication", "transients"};

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json regions_json(const ReplayFigures& figures) {
  Json regions = Json::object();
  for (std::size_t region = 0; region < figures.regions.size(); ++region) {
    const RegionStatistics& statistics = figures.regions[region];
    regions[kRegionNames[region]] = {{"reserved_peak", statistics.reserved_bytes.peak},
                                     {"allocated_peak", statistics.allocated_bytes.peak}};
  }
  return regions;
}

Json to_json(const ReplayFigures& figures) {
  const bool ours = figures.policy == ReplayPolicy::ours;
  Json growth = nullptr;
  if (figures.growth) growth = {{"after_steps", figures.growth->after_steps}, {"bytes", figures.growth->bytes}};
  return {{"policy", name_of(figures.policy)},
          {"limit_bytes", figures.limit_bytes},
          {"operations", figures.operations},
          {"ns_per_operation", figures.ns_per_operation},
          {"live_peak", figures.live_peak},
          {"reserved_peak", figures.reserved_peak},
          {"reserved_over_live", figures.reserved_over_live()},
          {"fragmentation",
           {{"peak", figures.fragmentation_peak},
            {"free", or_null(figures.fragmentation_free)},
            {"free_concentration", or_null(figures.free_concentration)}}},
          {"segments", figures.segments},
          {"refused", figures.refused},
          {"first_refused_event", or_null(figures.first_refused)},
          {"growth", growth},
          {"drift", or_null(figures.drift)},
          {"regions", ours ? regions_json(figures) : Json(nullptr)}};
}

Json to_json(const ExactReplay& exact) {
  Json difference = nullptr;
  if (exact.difference) {
    difference = {{"event", exact.difference->event},
                  {"expected", exact.difference->expected},
                  {"found", exact.difference->found}};
  }
  return {{"events", exact.events},
          {"same", !exact.difference},
          {"difference", difference},
          {"lost_waits", exact.lost_waits}};
}

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f} %", 100 * *value) : std::string("-");
}

void print(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fputc('\n', stdout);
}

void print_table(const std::vector<ReplayFigures>& all) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  print(fmt::format("{:<11} {:>12} {:>12} {:>9} {:>9} {:>9} {:>7} {:>9} {:>12} {:>8} {:>8} {:>7}", "policy",
                    "live peak", "reserved", "res/live", "unused", "free split", "pieces", "segments", "growth",
                    "drift", "refused", "ns/op"));
  for (const ReplayFigures& each : all) {
    const std::string growth =
        each.growth ? fmt::format("{:.1f} MiB", static_cast<double>(each.growth->bytes) / kMebibyte) : "-";
    const std::string pieces = each.free_concentration ? fmt::format("{:.3f}", *each.free_concentration) : "-";
    print(fmt::format("{:<11} {:>8.1f} MiB {:>8.1f} MiB {:>9.4f} {:>9} {:>10} {:>7} {:>8} {:>12} {:>8} {:>8} {:>7.1f}",
                      name_of(each.policy), static_cast<double>(each.live_peak) / kMebibyte,
                      static_cast<double>(each.reserved_peak) / kMebibyte, each.reserved_over_live(),
                      percent(each.fragmentation_peak), percent(each.fragmentation_free), pieces, each.segments, growth,
                      percent(each.drift), each.refused, each.ns_per_operation));
  }
}

void print_exact(const ExactReplay& exact) {
  if (!exact.difference) {
    print(fmt::format("{} events: the same addresses, events and statistics as recorded", exact.events));
    return;
  }
  print(fmt::format("differs from the recording at event {}: expected {}; found {}{}", exact.difference->event,
                    exact.difference->expected, exact.difference->found,
                    exact.lost_waits ? ". (The recording lacks device waits.)" : ""));
}

}  // namespace

void replay_command(const CommandLine& line) {
  check_outputs(line.config, 0, 1, {}, InputFile{"FILE", line.replay.file});
  const ReplaySource source = replay_source(line.replay.file);
  const ExactReplay exact = replay_exactly(source);
  std::vector<ReplayFigures> all;
  for (const ReplayPolicy policy : {ReplayPolicy::ours, ReplayPolicy::native, ReplayPolicy::expandable}) {
    if (!line.replay.policy.empty() && line.replay.policy != name_of(policy)) continue;
    all.push_back(replay(source, policy, {line.replay.limit_bytes, line.replay.repeats}));
  }
  if (line.config.json_path != "-") {
    print_exact(exact);
    print_table(all);
  }
  if (line.config.json_path.empty()) return;
  Json policies = Json::array();
  for (const ReplayFigures& each : all) policies.push_back(to_json(each));
  const Json report{{"replay", 1}, {"file", line.replay.file}, {"exact", to_json(exact)}, {"policies", policies}};
  write_output(line.config.json_path, dump(report, 2) + "\n");
}

}  // namespace headroom::bench
