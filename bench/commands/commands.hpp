#pragma once

#include "data/token_data.hpp"
#include "options/command_line.hpp"

#include <headroom/communicator.hpp>

namespace headroom::bench {

/// What main gives a command on each rank. All ranks have the same command line by then. `control` is the program's
/// own, apart from those that a command makes with job.communicators(); `data` is that of all ranks of this process.
struct RankContext {
  Job& job;
  Communicator& control;
  SharedTokenData& data;
};

/// Each runs on every rank and throws on failure; the exit code is exit_code_of the exception.
void train_command(const CommandLine& line, RankContext context);
void ab_command(const CommandLine& line, RankContext context);
void comm_command(const CommandLine& line, RankContext context);

/// Runs once, whatever the ranks.
void schedule_command(const CommandLine& line);
void inspect_command(const CommandLine& line);
/// Throws: as replay_source and replay.
void replay_command(const CommandLine& line);

}  // namespace headroom::bench
