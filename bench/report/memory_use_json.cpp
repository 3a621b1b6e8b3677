#include "report/memory_use_json.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace headroom::bench {
namespace {

Json figure_or_null(bool known, std::size_t bytes) { return known ? Json(bytes) : Json(nullptr); }

/// Whole bytes for each rank. What division leaves over is nobody's.
Json share_of(const Json& moment, std::size_t ranks) {
  Json share{{"moment", moment.at("moment")}};
  const bool known = moment.at("used").get<std::size_t>() > 0;
  const std::size_t used = moment.at("used").get<std::size_t>() / ranks;
  const std::size_t reserved = moment.at("reserved").get<std::size_t>() / ranks;
  std::size_t attributed = reserved;
  Json external = Json::object();
  for (const auto& owner : moment.at("external").items()) {
    const std::size_t bytes = owner.value().at("bytes").get<std::size_t>() / ranks;
    external[owner.key()] = bytes;
    attributed += bytes;
  }
  share["used"] = figure_or_null(known, used);
  share["reserved"] = figure_or_null(known, reserved);
  share["external"] = external;
  share["unattributed"] = figure_or_null(known, used - attributed);
  return share;
}

}  // namespace

Json to_json(const std::vector<MemoryMoment>& moments) {
  Json json = Json::array();
  for (const MemoryMoment& moment : moments) {
    Json external = Json::object();
    for (const auto& [name, figure] : moment.use.external) {
      external[name] = {{"bytes", figure.bytes}, {"source", figure.source}};
    }
    json.push_back({{"moment", moment.name},
                    {"used", moment.use.used_bytes},
                    {"peak", moment.use.peak_used_bytes},
                    {"reserved", moment.use.reserved_bytes},
                    {"external", external}});
  }
  return json;
}

void add_memory_use(Json& per_rank, const Json& moments, int ranks_in_process) {
  Json& system = per_rank["system"] = Json::array();
  Json sources = Json::object();
  for (const Json& moment : moments) {
    system.push_back(share_of(moment, static_cast<std::size_t>(ranks_in_process)));
    for (const auto& owner : moment.at("external").items()) sources[owner.key()] = owner.value().at("source");
  }
  per_rank["external"] = system.back().at("external");
  per_rank["external_sources"] = sources;
  per_rank["unattributed"] = system.back().at("unattributed");
  const auto peak = moments.back().at("peak").get<std::size_t>();
  per_rank["process_peak_rss"] = figure_or_null(peak > 0, peak);
}

std::string memory_use_line(const Json& report) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  double used = 0;
  double reserved = 0;
  double unattributed = 0;
  std::map<std::string, double> external;
  for (const Json& rank : report.at("memory").at("per_rank")) {
    const Json& last = rank.at("system").back();
    if (last.at("used").is_null()) return "the system does not say what the process uses";
    used += last.at("used").get<double>();
    reserved += last.at("reserved").get<double>();
    unattributed += last.at("unattributed").get<double>();
    for (const auto& owner : last.at("external").items()) external[owner.key()] += owner.value().get<double>();
  }
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& owner : external) largest.emplace_back(owner.second, owner.first);
  std::sort(largest.rbegin(), largest.rend());
  std::string line = fmt::format("the system uses {:.1f} MiB: {:.1f} reserved", used / kMebibyte, reserved / kMebibyte);
  for (const auto& owner : largest) line += fmt::format(", {:.1f} {}", owner.first / kMebibyte, owner.second);
  return line + fmt::format("; {:.2f} unattributed", unattributed / kMebibyte);
}

}  // namespace headroom::bench
