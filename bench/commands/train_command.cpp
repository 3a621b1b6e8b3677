#include "commands/commands.hpp"
#include "commands/run_files.hpp"
#include "io/outputs.hpp"
#include "options/agreement.hpp"
#include "options/json_text.hpp"
#include "report/memory_use_json.hpp"
#include "report/progress.hpp"
#include "report/report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace headroom::bench {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

void print(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fputc('\n', stdout);
}

/// What rank 0 says while a run goes on.
class Lines {
 public:
  Lines(const Config& config, bool prints)
      : progress_(config.quiet || !prints), steps_(config.steps), lines_(prints && config.json_path != "-") {}

  void start() {
    if (lines_)
      print(fmt::format("{:>6} {:>10} {:>11} {:>11} {:>15} {:>15}", "step", "loss", "ms", "tokens/s", "peak allocated",
                        "peak reserved"));
    progress_.show(fmt::format("step 0 of {}", steps_));
  }
  void step(const StepRecord& step, const MemoryStatistics& memory) {
    progress_.clear();
    if (lines_) {
      print(fmt::format("{:>6} {:>10.5f} {:>11.2f} {:>11.0f} {:>11.1f} MiB {:>11.1f} MiB{}", step.step, step.loss,
                        step.seconds * 1e3, static_cast<double>(step.tokens) / step.seconds,
                        static_cast<double>(memory.allocated_bytes.peak) / kMebibyte,
                        static_cast<double>(memory.reserved_bytes.peak) / kMebibyte,
                        step.skipped ? "  gradients not finite: no update" : ""));
      std::fflush(stdout);
    }
    progress_.show(fmt::format("step {} of {}", step.step, steps_));
  }
  void end() { progress_.clear(); }

 private:
  Progress progress_;
  std::int64_t steps_;
  bool lines_;
};

double figure(const Json& report, const char* pointer) {
  const Json& value = report.at(Json::json_pointer(pointer));
  return value.is_null() ? 0 : value.get<double>();
}

std::string whole(const Json& report, const char* pointer) {
  const Json& value = report.at(Json::json_pointer(pointer));
  return value.is_null() ? "unknown" : fmt::format("{}", value.get<std::int64_t>());
}

void print_paths(const Json& report) {
  const Json& paths = report.at("schedule").at("paths");
  for (const Json& path : paths) {
    const Json& off = path.at("prefetch_off");
    if (paths.size() == 1 && off.is_null()) continue;
    print(fmt::format("path {}: {} steps, {}", path.at("name").get<std::string>(), path.at("steps").get<std::int64_t>(),
                      off.is_null() ? "prefetched" : "no prefetch: " + off.get<std::string>()));
  }
}

void print_summary(const Json& report, const std::vector<StepRecord>& steps, const TokenData& data) {
  constexpr std::size_t kLastLosses = 10;
  const std::size_t count = std::min(kLastLosses, steps.size());
  double sum = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) sum += steps[i].loss;
  const Json& peak = report.at("memory").at("peak");
  print(fmt::format("median step {:.2f} ms (p10 {:.2f}, p90 {:.2f}), {:.0f} tokens/s",
                    figure(report, "/seconds_per_step/median") * 1e3, figure(report, "/seconds_per_step/p10") * 1e3,
                    figure(report, "/seconds_per_step/p90") * 1e3, figure(report, "/tokens_per_second")));
  if (!report.at("floating_point").at("utilization").is_null()) {
    print(fmt::format(
        "{:.1f} GFLOP/s of model arithmetic; {:.3f} of the {:.1f} GFLOP/s that its matrix products reach alone",
        figure(report, "/floating_point/achieved_gflops"), figure(report, "/floating_point/utilization"),
        figure(report, "/floating_point/gemm_peak_gflops")));
  }
  if (report.at("world").get<int>() > 1 && !report.at("communication").at("busy_seconds").is_null()) {
    print(fmt::format("communication: {:.2f} ms busy, {:.2f} ms exposed, complete after {:.2f} ms",
                      figure(report, "/communication/busy_seconds") * 1e3,
                      figure(report, "/communication/exposed_seconds") * 1e3,
                      figure(report, "/communication/completion_seconds") * 1e3));
  }
  print(
      fmt::format("peak allocated {:.1f} MiB on rank {}, in {} of {}; live sets: {} of parameters (bound {}), {} of "
                  "gradients (bound {})",
                  figure(report, "/memory/peak/allocated") / kMebibyte, peak.at("rank").get<int>(),
                  peak.at("phase").is_null() ? "the start" : peak.at("phase").get<std::string>(),
                  peak.at("unit").is_null() ? "the run" : peak.at("unit").get<std::string>(),
                  whole(report, "/memory/sets_peak/parameters"), whole(report, "/schedule/bound/parameter_sets"),
                  whole(report, "/memory/sets_peak/gradients"), whole(report, "/schedule/bound/gradient_sets")));
  print(memory_use_line(report));
  print_paths(report);
  if (report.at("limiter").at("active").get<bool>()) {
    print(fmt::format("limit-all-gathers: {} waits, {:.2f} ms", whole(report, "/limiter/waits"),
                      figure(report, "/limiter/waited_seconds") * 1e3));
  }
  print(fmt::format("unigram entropy of the data: {:.4f} nats; mean of the last {} losses: {:.4f}",
                    data.unigram_entropy_nats(), count, sum / static_cast<double>(count)));
  print("parameters crc32c " + report.at("parameters_crc32c").get<std::string>());
}

void train(const CommandLine& line, const RankContext& context, const TokenData& data, const RunFiles& files) {
  const Config& config = line.config;
  const bool prints = context.control.rank() == 0;
  Run run(config, context.job, data, make_workload(config),
          {.replay_gemms = config.host.executor != Executor::none,
           .recording_path = files.recording(),
           .command = fmt::format("{}", fmt::join(line.argv, " "))});
  Lines lines(config, prints);
  lines.start();
  std::vector<StepRecord> steps;
  while (const std::optional<StepRecord> step = run.next()) {
    steps.push_back(*step);
    lines.step(*step, run.memory().statistics());
  }
  lines.end();
  const RankRecord record = run.finish();
  const Json report = make_report({"train", line.argv}, run, steps, record, context.job, context.control);
  run_checked(context.control, [&] {
    if (!prints) return;
    if (config.json_path != "-") print_summary(report, steps, data);
    if (!config.json_path.empty()) write_output(config.json_path, dump(report, 2) + "\n");
    flush_stdout();
  });
  files.write(context.control);
}

}  // namespace

void train_command(const CommandLine& line, RankContext context) {
  const Config& config = line.config;
  std::shared_ptr<const TokenData> data;
  run_checked(context.control, [&] {
    check_outputs(config, context.control.rank(), context.control.size());
    data = context.data.load(data_options(config));
  });
  check_same(context.control, "--data", data->summary());
  const RunFiles files(config, context.job);
  try {
    train(line, context, *data, files);
  } catch (const std::exception& error) {
    files.write_of_failed_run(error, context.control);
    throw;
  }
}

}  // namespace headroom::bench
