#pragma once

#include <headroom/communicator.hpp>

#include "data/token_data.hpp"
#include "options/config.hpp"
#include "report/report.hpp"
#include "run/run.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace headroom::bench {

/// A model that trains in milliseconds, with `more` on top of it.
inline Config small_config(std::vector<Setting> more = {}) {
  std::vector<Setting> settings{{"layers", "2"}, {"width", "16"},      {"heads", "2"}, {"vocab", "128"},
                                {"seq", "12"},   {"micro-batch", "2"}, {"steps", "4"}, {"lr", "1e-2"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_config(settings);
}

/// What a whole run gave; equal on all ranks but for the report, which rank 0 has.
struct SmallResult {
  std::vector<StepRecord> steps;
  std::uint32_t crc32c = 0;
  RankRecord record;
  Json report;
};

using MakeWorkload = std::function<std::unique_ptr<Workload>(const Config&)>;

/// Runs `config` on as many threads as it has ranks; the results in rank order.
inline std::vector<SmallResult> run_small(const Config& config, const MakeWorkload& make = make_workload) {
  std::vector<SmallResult> results(static_cast<std::size_t>(config.ranks));
  const TokenData data = TokenData::load(data_options(config));
  run_ranks(config.ranks, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    SmallResult& mine = results[static_cast<std::size_t>(job.rank())];
    const std::shared_ptr<Communicator> control = job.communicators().control;
    Run run(config, job, data, make(config));
    while (const std::optional<StepRecord> step = run.next()) mine.steps.push_back(*step);
    mine.record = run.finish();
    mine.crc32c = run.crc32c();
    mine.report = make_report({"train", {"headroom", "train"}}, run, mine.steps, mine.record, job, *control);
  });
  return results;
}

}  // namespace headroom::bench
