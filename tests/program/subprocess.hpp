#pragma once

#include <string>
#include <vector>

namespace headroom::testing {

struct Outcome {
  int exit_code = -1;  ///< -1: killed after kLongestSeconds, so it hung.
  std::string out, err;
};
inline constexpr int kLongestSeconds = 60;

/// Runs a program to its end, its input empty, and collects what it printed.
[[nodiscard]] Outcome run_process(const std::vector<std::string>& command);

/// The headroom program with these arguments: alone, or `world` times under mpirun.
[[nodiscard]] Outcome run_headroom(const std::vector<std::string>& arguments);
[[nodiscard]] Outcome run_headroom_under_mpi(int world, const std::vector<std::string>& arguments);
/// One argument list a rank.
[[nodiscard]] Outcome run_headroom_ranks(const std::vector<std::vector<std::string>>& arguments_of_rank);

/// The lines that begin "headroom: error: ".
[[nodiscard]] std::vector<std::string> error_lines(const Outcome& outcome);

/// A new folder below the test's temporary one, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return path_ + (name.empty() ? "" : "/" + name);
  }
  /// Makes a file and returns its path.
  std::string file(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace headroom::testing
