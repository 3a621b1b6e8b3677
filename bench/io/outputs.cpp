#include "io/outputs.hpp"

#include "options/input_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace headroom::bench {
namespace {

struct Output {
  const char* option;
  std::string pattern;
};

/// Both name one file, or will.
bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  const auto place = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    return error ? std::filesystem::path(path) : canonical;
  };
  return place(a) == place(b);
}

void expect_other_file(const Output& output, const std::string& path, const std::string& option,
                       const std::string& other) {
  if (is_same_file(path, other))
    throw bad_input(output.option, "another file than that of " + option, in_quotes(output.pattern));
}

InvalidInput unwritable(const char* option, const std::string& path, int error_number) {
  return bad_input(std::string(option) + " " + path, "a file that can be written", std::strerror(error_number));
}

void check_file(const char* option, const std::string& path) {
  struct stat status {};
  const bool was_there = ::stat(path.c_str(), &status) == 0;
  if (was_there && S_ISDIR(status.st_mode)) throw bad_input(std::string(option) + " " + path, "a file", "a folder");
  const bool is_missing = !was_there && errno == ENOENT;
  std::error_code not_a_link;
  const std::filesystem::path target = std::filesystem::read_symlink(path, not_a_link);
  if (is_missing && !not_a_link) {  // Opening would make the link's target.
    check_file(option, (std::filesystem::path(path).parent_path() / target).string());
    return;
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) throw unwritable(option, path, errno);
  ::close(file);
  if (!was_there) ::unlink(path.c_str());
}

void check_folder(const char* option, const std::string& path) {
  std::error_code error, ignored;
  std::filesystem::create_directories(path, error);
  if (!std::filesystem::is_directory(path, ignored))
    throw bad_input(std::string(option) + " " + path, "a folder, or a place for one",
                    error ? error.message() : std::string("a file"));
  check_file(option, (std::filesystem::path(path) / ".headroom-write-test").string());
}

}  // namespace

std::optional<std::string> output_path(const std::string& pattern, int rank) {
  constexpr std::string_view kRank = "{rank}";
  if (pattern.empty()) return std::nullopt;
  std::string path = pattern;
  bool has_rank = false;
  for (std::size_t at = path.find(kRank); at != std::string::npos; at = path.find(kRank, at + 1)) {
    path.replace(at, kRank.size(), std::to_string(rank));
    has_rank = true;
  }
  if (!has_rank && rank != 0) return std::nullopt;
  return path;
}

std::string with_arm(const std::string& pattern, const std::string& arm) {
  if (pattern.empty() || arm.empty()) return pattern;
  const std::filesystem::path path(pattern);
  std::string name = path.stem().string();
  name.append(".").append(arm).append(path.extension().string());
  return (path.parent_path() / name).string();
}

void check_outputs(const Config& config, int rank, int world, const std::string& arm,
                   const std::optional<InputFile>& input) {
  const auto of_arm = [&arm](const std::string& pattern) { return with_arm(pattern, arm); };
  const Output outputs[] = {{"--json", config.json_path == "-" ? "" : config.json_path},
                            {"--trace", of_arm(config.trace_path)},
                            {"--events", of_arm(config.events_path)},
                            {"--snapshot", of_arm(config.snapshot_path)},
                            {"--report", of_arm(config.report_path)},
                            {"--png", of_arm(config.png_path)}};
  std::vector<std::pair<const char*, std::string>> others;  // of the outputs before this one, all ranks'
  for (const Output& output : outputs) {
    std::vector<std::string> paths;
    for (int each = 0; each < world; ++each) {
      if (const std::optional<std::string> path = output_path(output.pattern, each)) paths.push_back(*path);
    }
    for (const std::string& path : paths) {
      if (input) expect_other_file(output, path, input->option, input->path);
      for (const auto& other : others) expect_other_file(output, path, other.first, other.second);
    }
    for (const std::string& path : paths) others.emplace_back(output.option, path);
    if (const std::optional<std::string> path = output_path(output.pattern, rank)) check_file(output.option, *path);
  }
  if (!config.export_dir.empty() && rank == 0) check_folder("--export", config.export_dir);
}

void write_output(const std::string& path, std::string_view text) {
  const auto fail = [&](int error_number) {
    throw InputOutputError(path + ": expected to write " + std::to_string(text.size()) +
                           " bytes, found: " + std::strerror(error_number) + ".");
  };
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_stdout();
    return;
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail(errno);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  if (std::fclose(file) != 0) fail(errno);
  if (!is_written) fail(write_error);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw InputOutputError(std::string("stdout: expected to be written, found: ") + std::strerror(errno) + ".");
}

}  // namespace headroom::bench
