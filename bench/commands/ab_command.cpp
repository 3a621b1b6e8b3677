#include "commands/arms.hpp"
#include "commands/commands.hpp"
#include "commands/run_files.hpp"
#include "io/outputs.hpp"
#include "options/agreement.hpp"
#include "options/json_text.hpp"
#include "report/ab_report.hpp"
#include "report/progress.hpp"
#include "report/report.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>

namespace headroom::bench {
namespace {

struct Arm {
  const char* name;
  const Config* config;
  std::shared_ptr<const TokenData> data;
  ArmResult result;
  Outcome outcome;  ///< Of the last round.
};

class Comparison {
 public:
  Comparison(const CommandLine& line, const RankContext& context, const Arms& arms)
      : line_(line),
        context_(context),
        arms_{
            {{"a", &arms.a, nullptr, {arms.a_label, {}, {}}, {}}, {"b", &arms.b, nullptr, {arms.b_label, {}, {}}, {}}}},
        progress_(context.control.rank() != 0),
        coin_(line.config.seed) {
    result_.changed = arms.changed;
    result_.equivalence = equivalence_of(arms.changed, arms.a, arms.b);
    loss_tolerance_ = loss_tolerance_of(arms.a, arms.b);
    result_.notes = arms.notes;
    run_checked(context_.control, [this] {
      for (Arm& arm : arms_) arm.data = context_.data.load(data_options(*arm.config));
    });
    for (const Arm& arm : arms_) check_same(context_.control, "--data", arm.data->summary());
  }

  AbResult run() {
    run_round(0);  // covers what a first run pays for, and shows early that the arms differ or do not fit
    for (int round = 1; round <= line_.ab.rounds && comparable(); ++round) {
      run_round(round);
      result_.rounds = round;
    }
    note_what_is_missing();
    progress_.clear();
    result_.a = arms_[0].result;
    result_.b = arms_[1].result;
    return result_;
  }

 private:
  [[nodiscard]] bool comparable() const {
    return !result_.difference && !arms_[0].result.figures.infeasible && !arms_[1].result.figures.infeasible;
  }

  /// The last round alone writes files of arms that fit, and replays matrix products: the others are to be left
  /// undisturbed. The warm-up is recorded too: an arm that does not fit ends there.
  void note_what_is_missing() {
    if (rounds_begun_ > line_.ab.rounds) return;
    const int ended = rounds_begun_ - 1;
    const Config& config = line_.config;
    const bool wants_files =
        !(config.trace_path + config.events_path + config.snapshot_path + config.report_path + config.png_path).empty();
    result_.notes.push_back(fmt::format("the comparison ended in round {} of {}{}: {}no utilization was measured",
                                        ended, line_.ab.rounds, ended == 0 ? " (the warm-up)" : "",
                                        wants_files ? "files of arms that fit were not written, and " : ""));
  }

  void run_round(int round) {
    ++rounds_begun_;
    const bool b_first = std::uniform_int_distribution<int>(0, 1)(coin_) == 1;
    if (round > 0) result_.order.emplace_back(b_first ? "ba" : "ab");
    spdlog::info("round {}: {}", round, b_first ? "b, then a" : "a, then b");
    run_arm(arms_[b_first ? 1 : 0], round);
    run_arm(arms_[b_first ? 0 : 1], round);
    if (!comparable()) return;
    // Every rank has the same losses and checksums, so every rank finds the same.
    result_.difference = first_difference(arms_[0].outcome, arms_[1].outcome, result_.equivalence, loss_tolerance_);
  }

  /// One run of one arm, from the start. An arm that does not fit is a result, and the same one on every rank.
  void run_arm(Arm& arm, int round) {
    spdlog::set_level(spdlog::level::from_str(arm.config->log_level));
    progress_.clear();
    if (!arm.config->quiet)
      progress_.show(round == 0 ? fmt::format("warm-up, arm {}", arm.name)
                                : fmt::format("round {} of {}, arm {}", round, line_.ab.rounds, arm.name));
    const RunFiles files(*arm.config, context_.job, arm.name);
    try {
      train(arm, round, files);
      if (round == 0 && line_.ab.rounds > 0) files.discard();
    } catch (const std::exception& error) {
      if (is_recorded(round)) files.write_of_failed_run(error, context_.control);
      if (exit_code_of(error) != exit_code_of(OutOfMemory("", {}))) throw;
      arm.result.figures.infeasible = describe(error, context_.control.rank()).text;
      arm.result.report = nullptr;
    }
  }

  [[nodiscard]] bool is_recorded(int round) const { return round == 0 || round == line_.ab.rounds; }

  void train(Arm& arm, int round, const RunFiles& files) {
    const bool last = round == line_.ab.rounds;
    Run run(*arm.config, context_.job, *arm.data, make_workload(*arm.config),
            {.replay_gemms = last,
             .recording_path = is_recorded(round) ? files.recording() : "",
             .command = fmt::format("{}", fmt::join(line_.argv, " "))});
    arm.outcome = {};
    while (const std::optional<StepRecord> step = run.next()) arm.outcome.steps.push_back(*step);
    const RankRecord record = run.finish();
    arm.outcome.parameters_crc32c = run.crc32c();
    arm.result.report = make_report({"ab", line_.argv}, run, arm.outcome.steps, record, context_.job, context_.control);
    if (round > 0 && context_.control.rank() == 0) arm.result.figures.add(arm.result.report, arm.outcome.steps);
    if (last) files.write(context_.control);
  }

  const CommandLine& line_;
  RankContext context_;
  std::array<Arm, 2> arms_;
  Progress progress_;
  std::mt19937_64 coin_;
  AbResult result_;
  int rounds_begun_ = 0;
  double loss_tolerance_ = 0;
};

}  // namespace

void ab_command(const CommandLine& line, RankContext context) {
  std::optional<Arms> arms;
  run_checked(context.control, [&] {
    arms = make_arms(line);
    check_outputs(arms->a, context.control.rank(), context.control.size(), "a");
    check_outputs(arms->b, context.control.rank(), context.control.size(), "b");
  });
  const AbResult result = Comparison(line, context, *arms).run();
  run_checked(context.control, [&] {
    if (context.control.rank() != 0) return;
    const Config& config = line.config;
    if (config.json_path != "-") std::fputs(ab_table(result).c_str(), stdout);
    if (!config.json_path.empty()) write_output(config.json_path, dump(ab_json(result), 2) + "\n");
    flush_stdout();
  });
}

}  // namespace headroom::bench
