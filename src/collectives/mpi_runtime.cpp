#include "collectives/mpi_runtime.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <array>
#include <string>
#include <utility>

namespace headroom::detail {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommunicatorError(
      fmt::format("{} failed: {}", call, std::string(text.data(), static_cast<std::size_t>(length))));
}

MpiRuntime::MpiRuntime() {
  int finalized = 0, initialised = 0, level = MPI_THREAD_SINGLE;
  MPI_Finalized(&finalized);
  if (finalized != 0) throw CommunicatorError("MPI was finalized earlier in this process and cannot be started again");
  MPI_Initialized(&initialised);
  if (initialised != 0) {
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  } else {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    initialised_here_ = true;
  }
  if (level < MPI_THREAD_MULTIPLE) {
    throw CommunicatorError(fmt::format(
        "MPI gives thread level {}, expected MPI_THREAD_MULTIPLE ({}): streams drive collectives from several threads. "
        "Use an MPI built with thread support, and ask for that level where MPI is initialised",
        level, MPI_THREAD_MULTIPLE));
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(world_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(world_, &size_), "MPI_Comm_size");
}

MpiRuntime::~MpiRuntime() {
  if (!clean()) {
    // MPI may still write into what was abandoned, and MPI_Finalize might wait for it: leave both to the process's end.
    [[maybe_unused]] auto* const kept = new std::vector<std::shared_ptr<void>>(std::move(abandoned_));
    return;
  }
  MPI_Comm_free(&world_);
  if (initialised_here_) MPI_Finalize();
}

void MpiRuntime::abandon(std::shared_ptr<void> owner) noexcept {
  const std::lock_guard lock(mutex_);
  abandoned_any_ = true;
  abandoned_.push_back(std::move(owner));  // No memory for this, while MPI holds our buffers: terminate.
}

bool MpiRuntime::clean() noexcept {
  const std::lock_guard lock(mutex_);
  return !abandoned_any_;
}

}  // namespace headroom::detail
