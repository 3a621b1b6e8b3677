#pragma once

#include "options/command_line.hpp"
#include "options/exit_codes.hpp"

#include <headroom/communicator.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace headroom::bench {

/// Votes on one failure (or none) of this rank. Collective. Returns, on every rank alike, the failure of the lowest
/// rank that has one, causes before consequences.
[[nodiscard]] std::optional<Failure> vote(Communicator& control, const std::optional<Failure>& mine);

/// Runs `action` here, then votes: either every rank goes on, or every rank throws the same error, that of the lowest
/// rank that failed. For actions that only this process can judge: files, folders, sizes. Collective; `action` must not
/// communicate.
void run_checked(Communicator& control, const std::function<void()>& action);

/// Throws, on every rank, one InvalidInput that names the first option that differs from rank 0's, where one does.
void check_agreement(Communicator& control, const CommandLine& line);

/// Throws, on every rank, one InvalidInput that names `what`, where `found` is not on every rank as on rank 0: files
/// are read by each rank, and a name does not tell what is in them. Collective.
void check_same(Communicator& control, const std::string& what, const std::string& found);

}  // namespace headroom::bench
