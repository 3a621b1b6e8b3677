#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <vector>

namespace headroom::detail {

/// Throws CommunicatorError, naming `call`, where `code` is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Owns the use of MPI by this process: initialises it if nobody did, finalises only what it initialised, and never
/// after a failure. Thread-safety: every member may be called from any thread.
class MpiRuntime {
 public:
  /// Throws: CommunicatorError without MPI_THREAD_MULTIPLE, or after MPI_Finalize.
  MpiRuntime();
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  [[nodiscard]] MPI_Comm world() const noexcept { return world_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Keeps `owner` for the life of the process: MPI still has requests into its memory, and cannot cancel them.
  void abandon(std::shared_ptr<void> owner) noexcept;
  [[nodiscard]] bool clean() noexcept;  ///< Nothing was abandoned.

 private:
  bool initialised_here_ = false;
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::mutex mutex_;
  bool abandoned_any_ = false;
  std::vector<std::shared_ptr<void>> abandoned_;
};

}  // namespace headroom::detail
