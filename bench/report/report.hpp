#pragma once

#include "report/rank_json.hpp"
#include "run/run.hpp"

#include <headroom/communicator.hpp>

#include <string>
#include <vector>

namespace headroom::bench {

/// What a report says of the program, not of the run.
struct ReportHeader {
  std::string command;
  std::vector<std::string> argv;
};

/// The report of one run (CONTRACT section 2), after Run::finish. Statistics of times leave out the first step where
/// there are more than two; tokens and FLOP/s are those of the median step. Collective: ranks send their records to
/// rank 0, which returns the report; the others return null.
[[nodiscard]] Json make_report(const ReportHeader& header, Run& run, const std::vector<StepRecord>& steps,
                               const RankRecord& record, const Job& job, Communicator& control);

/// By the units' indices.
[[nodiscard]] std::vector<std::string> unit_names(const ParameterManager& parameters);

/// {"median", "p10", "p90"} of the measured steps' seconds; null without steps.
[[nodiscard]] Json seconds_per_step_json(const std::vector<double>& seconds);
/// The seconds of the steps that statistics count.
[[nodiscard]] std::vector<double> measured_seconds(const std::vector<StepRecord>& steps);

}  // namespace headroom::bench
