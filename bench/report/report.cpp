#include "report/report.hpp"

#include "options/json_text.hpp"
#include "report/limiter_json.hpp"
#include "report/statistics.hpp"
#include "runtime/shard/consensus.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>

namespace headroom::bench {
namespace {

/// Every rank's record, on rank 0. Collective.
std::vector<Json> gather_records(Communicator& control, const Json& mine) {
  std::vector<Json> ranks;
  for (int rank = 0; rank < control.size(); ++rank) {
    const std::string text = detail::share_text(control, control.rank() == rank ? dump(mine) : std::string(), rank);
    if (control.rank() == 0) ranks.push_back(Json::parse(text));
  }
  return ranks;
}

/// Shards are f32 masters; full_bytes is what a gather brings, in the dtype that it has.
Json model_json(const ParameterManager& parameters, const Config& config, int world) {
  const bool gathers = config.shard_ranks(world) > 1;
  const auto element = static_cast<std::int64_t>(size_of(DType::f32));
  const auto gathered = static_cast<std::int64_t>(size_of(gathers ? config.gathered : DType::f32));
  Json json{{"parameters", parameters.parameter_count()}, {"units", Json::array()}};
  for (int unit = 0; unit < parameters.unit_count(); ++unit) {
    const FlatLayout& layout = parameters.layout(unit);
    json["units"].push_back({{"name", layout.unit},
                             {"parameters", layout.numel},
                             {"shard_bytes", layout.shard_numel * element},
                             {"full_bytes", layout.padded_numel * gathered}});
  }
  return json;
}

/// Without the path that a manager has unasked, where the model takes others.
std::vector<PathStatus> paths_of(const ParameterManager& parameters) {
  std::vector<PathStatus> paths = parameters.paths();
  const auto is_unused = [](const PathStatus& path) { return path.name == "default" && path.steps == 0; };
  const auto unused = std::find_if(paths.begin(), paths.end(), is_unused);
  if (paths.size() > 1 && unused != paths.end()) paths.erase(unused);
  return paths;
}

/// Of all paths whose visits are known: the text of each, the largest of their bounds. The hash is that of the only
/// one.
Json schedule_json(const ParameterManager& parameters) {
  std::optional<ScheduleBound> bound;
  std::string text;
  Json hash = nullptr;
  Json paths = Json::array();
  const std::vector<PathStatus> statuses = paths_of(parameters);
  for (const PathStatus& path : statuses) {
    const bool is_known = path.prefetch_off.empty();
    Json path_hash = nullptr;
    if (is_known) {
      const Schedule& schedule = parameters.schedule(path.name);
      const ScheduleBound mine = schedule.bound();
      if (!bound) bound.emplace();
      bound->parameter_sets = std::max(bound->parameter_sets, mine.parameter_sets);
      bound->gradient_sets = std::max(bound->gradient_sets, mine.gradient_sets);
      bound->communication_bytes = std::max(bound->communication_bytes, mine.communication_bytes);
      text += (statuses.size() > 1 ? "# path " + path.name + "\n" : "") + schedule.text();
      path_hash = fmt::format("{:016x}", schedule.hash());
    }
    if (statuses.size() == 1) hash = path_hash;
    paths.push_back({{"name", path.name},
                     {"declared", path.declared},
                     {"steps", path.steps},
                     {"prefetch_off", is_known ? Json(nullptr) : Json(path.prefetch_off)},
                     {"hash", path_hash}});
  }
  return {{"hash", hash},
          {"text", bound ? Json(text) : Json(nullptr)},
          {"bound",
           {{"parameter_sets", bound ? Json(bound->parameter_sets) : Json(nullptr)},
            {"gradient_sets", bound ? Json(bound->gradient_sets) : Json(nullptr)},
            {"communication_bytes", bound ? Json(bound->communication_bytes) : Json(nullptr)}}},
          {"paths", paths}};
}

Json steps_json(const std::vector<StepRecord>& steps) {
  Json json = Json::array();
  for (const StepRecord& step : steps) {
    json.push_back({{"step", step.step},
                    {"loss", step.loss},
                    {"gradient_norm", step.gradient_norm},
                    {"seconds", step.seconds},
                    {"tokens", step.tokens},
                    {"skipped", step.skipped}});
  }
  return json;
}

/// `seconds`: of the median step. The peak is the sum of the ranks' own rates, replayed all at the same time.
Json floating_point_json(const Run& run, double seconds, const std::vector<Json>& ranks) {
  constexpr double kGiga = 1e9;
  const double flops =
      run.workload().model_flops_per_token(run.config().seq) * static_cast<double>(run.tokens_per_step());
  const double achieved = flops / seconds / kGiga;
  const Json mean_peak = mean_of(ranks, "/gemm_flops_per_second");
  Json json{{"model_flops_per_step", flops}, {"achieved_gflops", achieved}};
  if (mean_peak.is_null()) {
    json["gemm_peak_gflops"] = nullptr;
    json["utilization"] = nullptr;
  } else {
    const double peak = mean_peak.get<double>() * static_cast<double>(ranks.size()) / kGiga;
    json["gemm_peak_gflops"] = peak;
    json["utilization"] = achieved / peak;
  }
  return json;
}

/// The steps that every rank's means count, and the records that all ranks lost.
Json trace_json(const std::vector<Json>& ranks) {
  std::int64_t steps = ranks.front().at("measured_steps").get<std::int64_t>();
  std::uint64_t dropped = 0;
  for (const Json& rank : ranks) {
    steps = std::min(steps, rank.at("measured_steps").get<std::int64_t>());
    dropped += rank.at("dropped_trace_records").get<std::uint64_t>();
  }
  return {{"measured_steps", steps}, {"dropped_records", dropped}};
}

/// A checksum that is not its owner's ends the run: a report with comparisons on every rank says that all were equal.
Json checksums_ok(const std::vector<Json>& ranks) {
  const bool compared = std::all_of(ranks.begin(), ranks.end(), [](const Json& rank) {
    return rank.at("checksums_compared").get<std::uint64_t>() > 0;
  });
  return compared ? Json(true) : Json(nullptr);
}

}  // namespace

std::vector<std::string> unit_names(const ParameterManager& parameters) {
  std::vector<std::string> names;
  for (int unit = 0; unit < parameters.unit_count(); ++unit) names.push_back(parameters.layout(unit).unit);
  return names;
}

std::vector<double> measured_seconds(const std::vector<StepRecord>& steps) {
  const std::int64_t first = first_measured_step(static_cast<std::int64_t>(steps.size()));
  std::vector<double> seconds;
  for (std::size_t i = static_cast<std::size_t>(first); i < steps.size(); ++i) seconds.push_back(steps[i].seconds);
  return seconds;
}

Json seconds_per_step_json(const std::vector<double>& seconds) {
  if (seconds.empty()) return {{"median", nullptr}, {"p10", nullptr}, {"p90", nullptr}};
  return {{"median", quantile(seconds, 0.5)}, {"p10", quantile(seconds, 0.1)}, {"p90", quantile(seconds, 0.9)}};
}

Json make_report(const ReportHeader& header, Run& run, const std::vector<StepRecord>& steps, const RankRecord& record,
                 const Job& job, Communicator& control) {
  const ParameterManager& parameters = run.parameters();
  Json mine = to_json(record, unit_names(parameters));
  mine["checksums_compared"] = parameters.checksums_compared();
  const std::vector<Json> ranks = gather_records(control, mine);
  if (control.rank() != 0) return nullptr;
  const std::vector<double> seconds = measured_seconds(steps);
  const double median = quantile(seconds, 0.5);
  Json report;
  report["headroom"] = {{"version", HEADROOM_VERSION}, {"report", 1}};
  report["command"] = header.command;
  report["argv"] = header.argv;
  report["device"] = job.device().name();
  report["world"] = job.world();
  report["config"] = to_json(run.config());
  report["model"] = model_json(parameters, run.config(), job.world());
  report["schedule"] = schedule_json(parameters);
  report["steps"] = steps_json(steps);
  report["tokens_per_second"] = static_cast<double>(run.tokens_per_step()) / median;
  report["seconds_per_step"] = seconds_per_step_json(seconds);
  report["floating_point"] = floating_point_json(run, median, ranks);
  report["memory"] = memory_json(ranks, ranks_in_process(job));
  report["communication"] = communication_json(ranks);
  report["gaps"] = gaps_json(ranks);
  report["device_idle_seconds"] = mean_of(ranks, "/times/device_idle");
  report["critical_path"] = critical_path_json(ranks);
  report["availability"] = availability_json(ranks);
  report["availability"]["checksums_ok"] = checksums_ok(ranks);
  report["limiter"] = limiter_json(run.config(), job.world(), ranks);
  report["recovery"] = {{"aborted_steps", 0}, {"retries", 0}, {"causes", Json::array()}};
  report["parameters_crc32c"] = fmt::format("{:08x}", run.crc32c());
  report["trace"] = trace_json(ranks);
  return report;
}

}  // namespace headroom::bench
