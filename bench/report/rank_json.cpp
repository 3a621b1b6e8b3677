#include "report/rank_json.hpp"

#include "report/memory_use_json.hpp"

#include <algorithm>
#include <cmath>

namespace headroom::bench {
namespace {

template <class Value>
Json known_or_null(bool known, const Value& value) {
  return known ? Json(value) : Json(nullptr);
}

Json unit_json(int unit, const std::vector<std::string>& names) {
  const bool known = unit >= 0 && static_cast<std::size_t>(unit) < names.size();
  return known ? Json(names[static_cast<std::size_t>(unit)]) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json statistics_json(const MemoryStatistics& memory) {
  return {{"allocated_bytes.all.peak", memory.allocated_bytes.peak},
          {"active_bytes.all.peak", memory.active_bytes.peak},
          {"reserved_bytes.all.peak", memory.reserved_bytes.peak},
          {"requested_bytes.all.peak", memory.requested_bytes.peak},
          {"pending_free_bytes.peak", memory.pending_free_bytes.peak},
          {"largest_free_block", memory.largest_free_block},
          {"num_alloc_retries", memory.num_alloc_retries},
          {"num_ooms", memory.num_ooms}};
}

Json regions_json(const MemoryStatistics& memory) {
  constexpr std::array<const char*, kRegionCount> kNames{"residents", "communication", "transients"};
  Json json;
  for (std::size_t region = 0; region < kNames.size(); ++region) {
    json[kNames[region]] = {{"reserved_peak", memory.regions[region].reserved_bytes.peak},
                            {"allocated_peak", memory.regions[region].allocated_bytes.peak}};
  }
  return json;
}

Json times_json(const TraceSummary& times, bool known) {
  return {{"busy", known_or_null(known, times.busy)},
          {"exposed", known_or_null(known, times.exposed)},
          {"completion", known_or_null(known, times.completion)},
          {"device_idle", known_or_null(known, times.device_idle)},
          {"throttle", known_or_null(known, times.throttle)},
          {"allocator", known_or_null(known, times.allocator)},
          {"launch", known_or_null(known, times.launch)},
          {"vote", known_or_null(known, times.vote)},
          {"path_compute", known_or_null(known, times.path_compute)},
          {"path_gather", known_or_null(known, times.path_gather)},
          {"path_reduce", known_or_null(known, times.path_reduce)},
          {"path_host", known_or_null(known, times.path_host)}};
}

const Json& at(const Json& json, const char* pointer) { return json.at(Json::json_pointer(pointer)); }

/// A count that is a whole number where every step was alike; else its mean.
Json whole_or_mean(const Json& value) {
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  return number == std::floor(number) ? Json(static_cast<std::int64_t>(number)) : value;
}

Json rounded(const Json& value) { return value.is_null() ? value : Json(std::llround(value.get<double>())); }

}  // namespace

Json peak_json(const MemoryPeak& peak, const std::vector<std::string>& names) {
  Json json;
  json["event"] = peak.event;
  json["step"] = peak.step < 0 ? Json(nullptr) : Json(peak.step);
  json["phase"] = text_or_null(peak.phase);
  json["unit"] = unit_json(peak.unit, names);
  json["operation"] = text_or_null(peak.operation);
  json["allocated"] = peak.allocated_bytes;
  Json& categories = json["categories"];
  for (int tag = 0; tag < kTagCount; ++tag) {
    categories[name_of(static_cast<Tag>(tag))] = peak.tag_bytes[static_cast<std::size_t>(tag)];
  }
  Json& blocks = json["blocks"] = Json::array();
  for (const LiveBlock& block : peak.blocks) {
    blocks.push_back({{"name", block.name},
                      {"unit", unit_json(block.unit, names)},
                      {"category", name_of(block.tag)},
                      {"bytes", block.bytes},
                      {"allocated_event", block.allocated_event},
                      {"freed_event", block.freed_event ? Json(*block.freed_event) : Json(nullptr)},
                      {"storage", block.shared ? "shared" : "own"}});
  }
  return json;
}

Json to_json(const RankRecord& record, const std::vector<std::string>& unit_names) {
  Json json;
  json["statistics"] = statistics_json(record.memory);
  json["regions"] = regions_json(record.memory);
  json["peak"] = peak_json(record.peak, unit_names);
  json["memory_use"] = to_json(record.memory_use);
  json["sets"] = {{"parameters", record.parameter_sets_peak}, {"gradients", record.gradient_sets_peak}};
  const bool measured = record.measured_steps > 0;
  const bool complete = record.dropped_trace_records == 0;
  json["measured_steps"] = record.measured_steps;
  json["times"] = times_json(record.times, measured);
  json["communication"] = {{"all_gathers", known_or_null(measured, record.communication.all_gathers)},
                           {"reduce_scatters", known_or_null(measured, record.communication.reduce_scatters)},
                           {"all_reduces", known_or_null(measured, record.communication.all_reduces)},
                           {"bytes_sent", record.communication.bytes_sent},
                           {"bytes_received", record.communication.bytes_received}};
  json["availability"] = {
      {"visits", known_or_null(measured, record.availability.visits)},
      {"late", known_or_null(measured, record.availability.late)},
      {"min_slack_seconds",
       record.availability.min_slack_seconds ? Json(*record.availability.min_slack_seconds) : Json(nullptr)}};
  json["limiter"] = {{"waits", known_or_null(complete, record.throttle_waits)},
                     {"waited_seconds", known_or_null(complete, record.throttle_seconds)}};
  json["gemm_flops_per_second"] = record.gemm_flops_per_second ? Json(*record.gemm_flops_per_second) : Json(nullptr);
  json["dropped_trace_records"] = record.dropped_trace_records;
  return json;
}

Json mean_of(const std::vector<Json>& ranks, const char* pointer) {
  double sum = 0;
  for (const Json& rank : ranks) {
    const Json& value = at(rank, pointer);
    if (value.is_null()) return nullptr;
    sum += value.get<double>();
  }
  return sum / static_cast<double>(ranks.size());
}

Json memory_json(const std::vector<Json>& ranks, int ranks_in_process) {
  Json json;
  json["statistic"] = "allocated_bytes.all.peak";
  std::size_t worst = 0;
  std::array<std::int64_t, 2> sets{};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto allocated = [&ranks](std::size_t of) { return at(ranks[of], "/peak/allocated").get<std::uint64_t>(); };
    if (allocated(rank) > allocated(worst)) worst = rank;
    sets[0] = std::max(sets[0], at(ranks[rank], "/sets/parameters").get<std::int64_t>());
    sets[1] = std::max(sets[1], at(ranks[rank], "/sets/gradients").get<std::int64_t>());
  }
  json["regions"] = ranks[worst].at("regions");
  Json& per_rank = json["per_rank"] = Json::array();
  for (const Json& rank : ranks) {
    per_rank.push_back(rank.at("statistics"));
    add_memory_use(per_rank.back(), rank.at("memory_use"), ranks_in_process);
  }
  json["peak"] = {{"rank", worst}};
  json["peak"].update(ranks[worst].at("peak"));
  const double active = per_rank[worst].at("active_bytes.all.peak").get<double>();
  json["reserved_over_live"] =
      active > 0 ? Json(per_rank[worst].at("reserved_bytes.all.peak").get<double>() / active) : Json(nullptr);
  json["sets_peak"] = {{"parameters", sets[0]}, {"gradients", sets[1]}};
  return json;
}

Json communication_json(const std::vector<Json>& ranks) {
  return {{"all_gathers", whole_or_mean(mean_of(ranks, "/communication/all_gathers"))},
          {"reduce_scatters", whole_or_mean(mean_of(ranks, "/communication/reduce_scatters"))},
          {"all_reduces", whole_or_mean(mean_of(ranks, "/communication/all_reduces"))},
          {"bytes_sent", rounded(mean_of(ranks, "/communication/bytes_sent"))},
          {"bytes_received", rounded(mean_of(ranks, "/communication/bytes_received"))},
          {"busy_seconds", mean_of(ranks, "/times/busy")},
          {"exposed_seconds", mean_of(ranks, "/times/exposed")},
          {"completion_seconds", mean_of(ranks, "/times/completion")}};
}

Json gaps_json(const std::vector<Json>& ranks) {
  return {{"throttle", mean_of(ranks, "/times/throttle")},
          {"allocator", mean_of(ranks, "/times/allocator")},
          {"launch", mean_of(ranks, "/times/launch")},
          {"vote", mean_of(ranks, "/times/vote")}};
}

Json critical_path_json(const std::vector<Json>& ranks) {
  return {{"compute", mean_of(ranks, "/times/path_compute")},
          {"gather", mean_of(ranks, "/times/path_gather")},
          {"reduce", mean_of(ranks, "/times/path_reduce")},
          {"host", mean_of(ranks, "/times/path_host")}};
}

Json availability_json(const std::vector<Json>& ranks) {
  std::int64_t visits = 0;
  std::int64_t late = 0;
  bool known = true;
  Json slack = nullptr;
  for (const Json& rank : ranks) {
    known = known && !at(rank, "/availability/visits").is_null();
    if (!known) continue;
    visits += at(rank, "/availability/visits").get<std::int64_t>();
    late += at(rank, "/availability/late").get<std::int64_t>();
    const Json& mine = at(rank, "/availability/min_slack_seconds");
    if (!mine.is_null() && (slack.is_null() || mine < slack)) slack = mine;
  }
  return {{"visits", known_or_null(known, visits)},
          {"late", known_or_null(known, late)},
          {"min_slack_seconds", known_or_null(known, slack)}};
}

}  // namespace headroom::bench
