#include "commands/run_files.hpp"

#include <headroom/error.hpp>

#include "io/outputs.hpp"
#include "options/agreement.hpp"
#include "options/exit_codes.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"
#include "report/snapshot_file.hpp"
#include "report/trace_file.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>
#include <vector>

namespace headroom::bench {
namespace {

bool has_rank(const std::string& pattern) { return pattern.find("{rank}") != std::string::npos; }

/// All ranks are there still, and know of it.
bool is_common(const std::exception& error) {
  if (exit_code_of(error) == exit_code_of(OutOfMemory("", {}))) return true;
  const auto* aborted = dynamic_cast<const StepAborted*>(&error);
  return aborted != nullptr && (aborted->fault() == Fault::bad_input || aborted->fault() == Fault::exception);
}

}  // namespace

RunFiles::RunFiles(const Config& config, const Job& job, std::string arm)
    : config_(config),
      rank_(job.rank()),
      world_(job.world()),
      arm_(std::move(arm)),
      recording_(recording_of(rank_)),
      is_asked_for_(recording_ == output_path(with_arm(config.events_path, arm_), rank_)) {}

RunFiles::~RunFiles() {
  if (!is_asked_for_) discard();
}

void RunFiles::discard() const noexcept {
  std::error_code ignored;
  if (!recording_.empty()) std::filesystem::remove(recording_, ignored);
}

std::string RunFiles::recording_of(int rank) const {
  if (const auto path = output_path(with_arm(config_.events_path, arm_), rank)) return *path;
  const std::string trace = with_arm(config_.trace_path, arm_);
  const auto beside = [&](const std::string& pattern) {
    return output_path(pattern, has_rank(pattern) ? rank : 0).value().append(".").append(std::to_string(rank)) +
           ".recording";
  };
  if (!trace.empty()) return beside(trace);  // one file of all ranks, or one a rank
  for (const std::string* pattern : {&config_.snapshot_path, &config_.report_path, &config_.png_path})
    if (output_path(*pattern, rank)) return beside(with_arm(*pattern, arm_));
  return {};
}

void RunFiles::write(Communicator& control) const {
  run_checked(control, [] {});  // every recording has its end
  run_checked(control, [this] {
    write_snapshot();
    write_trace();
    write_page_and_picture();
  });
}

void RunFiles::write_snapshot() const {
  if (const auto path = output_path(with_arm(config_.snapshot_path, arm_), rank_))
    bench::write_snapshot(recording_, *path);
}

void RunFiles::write_page_and_picture() const {
  if (const auto path = output_path(with_arm(config_.report_path, arm_), rank_))
    write_output(*path, report_page(recording_));
  if (const auto path = output_path(with_arm(config_.png_path, arm_), rank_))
    write_output(*path, report_picture(recording_));
}

void RunFiles::write_trace() const {
  const std::string pattern = with_arm(config_.trace_path, arm_);
  const auto path = output_path(pattern, rank_);
  if (!path) return;
  std::vector<std::string> recordings{recording_};
  for (int rank = 1; rank < world_ && !has_rank(pattern); ++rank) recordings.push_back(recording_of(rank));
  bench::write_trace(recordings, *path);
}

void RunFiles::write_of_failed_run(const std::exception& error, Communicator& control) const {
  if (!is_common(error)) return;
  try {
    write(control);
  } catch (const std::exception& second) {
    spdlog::warn("the files of a run that failed were not all written: {}", second.what());
  }
}

}  // namespace headroom::bench
