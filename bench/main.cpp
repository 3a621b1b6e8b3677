#include "commands/commands.hpp"
#include "io/outputs.hpp"
#include "options/agreement.hpp"
#include "options/command_line.hpp"
#include "options/exit_codes.hpp"
#include "options/input_error.hpp"

#include <headroom/communicator.hpp>

#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <algorithm>
#include <cstdio>
#include <exception>

namespace headroom::bench {
namespace {

void start_logging(const std::string& level) {
  const auto logger =
      std::make_shared<spdlog::logger>("headroom", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("[headroom %l] %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(logger);
}

// Both arms of a comparison run on one job, whose own communicators wait the longer; each arm's wait as it says.
CommunicatorOptions communicator_options(const CommandLine& line) {
  if (line.command != Command::ab) return {line.config.deadline};
  return {std::max(line.config.with(line.ab.a).deadline, line.config.with(line.ab.b).deadline)};
}

// Without --ranks a schedule is that of any world in which its groups make sense.
void check_world(const CommandLine& line) {
  const bool is_of_a_world = line.command == Command::schedule && line.config.is_given("ranks");
  if (line.command == Command::train || is_of_a_world) check_world(line.config, line.config.ranks);
  if (line.command != Command::ab) return;
  for (const auto* arm : {&line.ab.a, &line.ab.b}) check_world(line.config.with(*arm), line.config.ranks);
}

// Commands that need no ranks. False: it is not one of them.
bool run_once(const CommandLine& line, bool prints) {
  if (line.command == Command::train || line.command == Command::ab || line.command == Command::comm) return false;
  if (!prints) return true;
  if (line.command == Command::schedule) {
    schedule_command(line);
  } else if (line.command == Command::inspect) {
    inspect_command(line);
  } else if (line.command == Command::replay) {
    replay_command(line);
  } else {
    std::fputs(line.text.c_str(), stdout);
  }
  flush_stdout();
  return true;
}

void run_on_rank(const CommandLine& line, const RankContext& context) {
  if (line.command == Command::train) train_command(line, context);
  if (line.command == Command::ab) ab_command(line, context);
  if (line.command == Command::comm) comm_command(line, context);
}

template <class Action>
std::optional<Failure> attempt(int rank, const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return describe(error, rank);
  }
  return std::nullopt;
}

int finish(const std::optional<Failure>& failure) {
  if (!failure) return 0;
  print_error(*failure);
  return failure->exit_code;
}

void refuse_ranks(const CommandLine& line) {
  const auto refuse = [](const std::vector<Setting>& settings) {
    for (const Setting& setting : settings)
      if (setting.key == "ranks")
        throw bad_input("--ranks", "no such option under mpirun, which gives the ranks", in_quotes(setting.value));
  };
  refuse(line.config.given);
  refuse(line.ab.a);
  refuse(line.ab.b);
}

// Without communicators no rank can tell another that it speaks: the lowest one alive does, and its abort ends the
// others while they wait here.
void wait_for_turn(int rank) {
  constexpr int kTurnMilliseconds = 500, kTurns = 4;
  static_cast<void>(::poll(nullptr, 0, kTurnMilliseconds * std::min(rank, kTurns)));
}

/// Every rank votes on every way out, so that each knows what all do next and one of them prints.
int run_under_mpi(const std::vector<std::string>& argv) {
  CommandLine line;
  std::exception_ptr refusal;
  try {
    CommandLine parsed = parse_command_line(argv);
    refuse_ranks(parsed);
    line = std::move(parsed);
  } catch (const std::exception&) {
    refusal = std::current_exception();
  }
  start_logging(line.config.log_level);
  Job job = Job::from_environment(line.config.host, communicator_options(line));
  const int rank = job.rank();
  const std::shared_ptr<Communicator> control = job.communicators().control;
  line.config.ranks = job.world();

  std::optional<Failure> failure = attempt(rank, [&] {
    run_checked(*control, [&] {
      if (refusal) std::rethrow_exception(refusal);
    });
    check_agreement(*control, line);
    run_checked(*control, [&] { check_world(line); });
    SharedTokenData data;
    if (!run_once(line, rank == 0)) run_on_rank(line, {job, *control, data});
  });
  const bool is_peer_gone = failure && failure->exit_code == exit_code_of(DeadlineExceeded(""));
  std::optional<Failure> agreed;
  const std::optional<Failure> cannot_vote =
      is_peer_gone ? failure : attempt(rank, [&] { agreed = vote(*control, failure); });
  if (cannot_vote) {
    wait_for_turn(rank);
    const Failure& worst = failure ? *failure : *cannot_vote;
    print_error(worst);
    job.abort(worst.exit_code, worst.text.c_str());
    return worst.exit_code;
  }
  if (rank == 0) return finish(agreed);
  return agreed ? agreed->exit_code : 0;
}

int run_threads(const CommandLine& line) {
  std::vector<std::optional<Failure>> failures(static_cast<std::size_t>(line.config.ranks));
  SharedTokenData data;
  const auto body = [&](Job& job) {
    const int rank = job.rank();
    try {
      const std::shared_ptr<Communicator> control = job.communicators().control;
      run_on_rank(line, {job, *control, data});
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(rank)] = describe(error, rank);
      throw;
    }
  };
  const std::optional<Failure> thrown =
      attempt(0, [&] { run_ranks(line.config.ranks, line.config.host, communicator_options(line), body); });
  if (!thrown) return 0;
  for (const std::optional<Failure>& failure : failures)
    if (failure && !failure->is_consequence) return finish(failure);
  return finish(thrown);
}

int run_alone(const std::vector<std::string>& argv) {
  int code = 0;
  const std::optional<Failure> failure = attempt(0, [&] {
    const CommandLine line = parse_command_line(argv);
    start_logging(line.config.log_level);
    check_world(line);
    if (!run_once(line, true)) code = run_threads(line);
  });
  return failure ? finish(failure) : code;
}

}  // namespace
}  // namespace headroom::bench

int main(int argc, char** argv) {
  using namespace headroom;
  const std::vector<std::string> arguments(argv, argv + argc);
  try {
    return launched_by_mpi() ? bench::run_under_mpi(arguments) : bench::run_alone(arguments);
  } catch (const std::exception& error) {
    const bench::Failure failure = bench::describe(error, 0);
    bench::print_error(failure);
    return failure.exit_code;
  }
}
