#include "program/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace headroom::testing {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    read_end = ends[0];
    write_end = ends[1];
  }
};

[[noreturn]] void become(const std::vector<std::string>& command, const Pipe& out, const Pipe& err) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out.write_end, STDOUT_FILENO);
  ::dup2(err.write_end, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

// Reads both pipes to their ends. False: the time is up.
bool collect(const Pipe& out, const Pipe& err, Outcome& outcome) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kLongestSeconds);
  std::array<pollfd, 2> ends{{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
  std::array<char, 4096> bytes{};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(ends.data(), ends.size(), static_cast<int>(left.count())) == 0) return false;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t got = ::read(ends[i].fd, bytes.data(), bytes.size());
      if (got > 0) {
        (i == 0 ? outcome.out : outcome.err).append(bytes.data(), static_cast<std::size_t>(got));
      } else if (got == 0) {
        ends[i].fd = -1;
      }
    }
  }
  return true;
}

std::string program() { return HEADROOM_BINARY_DIR "/headroom"; }

std::vector<std::string> mpirun() {
  return {HEADROOM_MPIEXEC, "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"};
}

void append(std::vector<std::string>& command, const std::vector<std::string>& more) {
  command.insert(command.end(), more.begin(), more.end());
}

}  // namespace

Outcome run_process(const std::vector<std::string>& command) {
  const Pipe out, err;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(command, out, err);
  ::close(out.write_end);
  ::close(err.write_end);
  Outcome outcome;
  const bool is_done = collect(out, err, outcome);
  if (!is_done) ::kill(-child, SIGKILL);
  ::close(out.read_end);
  ::close(err.read_end);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_done) outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Outcome run_headroom(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{program()};
  append(command, arguments);
  return run_process(command);
}

Outcome run_headroom_under_mpi(int world, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = mpirun();
  append(command, {"-n", std::to_string(world), program()});
  append(command, arguments);
  return run_process(command);
}

Outcome run_headroom_ranks(const std::vector<std::vector<std::string>>& arguments_of_rank) {
  std::vector<std::string> command = mpirun();
  for (std::size_t rank = 0; rank < arguments_of_rank.size(); ++rank) {
    if (rank > 0) command.emplace_back(":");
    append(command, {"-n", "1", program()});
    append(command, arguments_of_rank[rank]);
  }
  return run_process(command);
}

std::vector<std::string> error_lines(const Outcome& outcome) {
  std::vector<std::string> lines;
  std::istringstream stream(outcome.err);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("headroom: error: ")) lines.push_back(line);
  return lines;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "headroom-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(const std::string& name, const std::string& content) const {
  std::ofstream(path(name), std::ios::binary) << content;
  return path(name);
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace headroom::testing
