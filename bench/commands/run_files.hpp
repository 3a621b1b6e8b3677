#pragma once

#include <headroom/communicator.hpp>

#include "options/config.hpp"

#include <exception>
#include <string>

namespace headroom::bench {

/// What a run writes beside its report: its recording, and the files that are made from it. All ranks make the same
/// calls.
class RunFiles {
 public:
  /// `arm` ("", "a", "b") goes before the file names' extensions.
  RunFiles(const Config& config, const Job& job, std::string arm = {});
  ~RunFiles();  ///< Removes a recording that nobody asked for.
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// Where this rank is to write its recording; empty: nowhere.
  [[nodiscard]] const std::string& recording() const noexcept { return recording_; }
  /// Makes the files, once all ranks have finished their recordings. Collective. Throws: InputOutputError.
  void write(Communicator& control) const;
  /// The same for a run that was refused memory, or whose step was aborted on all ranks: what became of it is what its
  /// files are wanted for. Warns where they cannot be written. For other errors nothing: peers may be gone.
  void write_of_failed_run(const std::exception& error, Communicator& control) const;
  void discard() const noexcept;  ///< Removes the recording.

 private:
  [[nodiscard]] std::string recording_of(int rank) const;
  void write_snapshot() const;
  void write_trace() const;
  void write_page_and_picture() const;

  const Config& config_;
  int rank_, world_;
  std::string arm_, recording_;
  bool is_asked_for_;
};

}  // namespace headroom::bench
