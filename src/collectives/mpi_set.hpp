#pragma once

#include "collectives/failure.hpp"
#include "collectives/mpi_runtime.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

namespace headroom::detail {

/// One set of communicators between processes: one duplicate of the world, whose tags keep the lanes apart, so that
/// groups need no MPI communicators of their own; and an alarm by which one rank's failure ends the set on all.
/// Thread-safety: every member may be called from any thread.
class MpiSet : public std::enable_shared_from_this<MpiSet> {
 public:
  /// Takes `comm`, a duplicate of the runtime's world.
  MpiSet(std::shared_ptr<MpiRuntime> runtime, MPI_Comm comm, std::chrono::milliseconds deadline);
  ~MpiSet();
  MpiSet(const MpiSet&) = delete;
  MpiSet& operator=(const MpiSet&) = delete;

  [[nodiscard]] MpiRuntime& runtime() const noexcept { return *runtime_; }
  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] std::chrono::milliseconds deadline() const noexcept { return deadline_; }
  [[nodiscard]] static int header_tag(Lane lane) noexcept { return 2 * lane.index; }
  [[nodiscard]] static int data_tag(Lane lane) noexcept { return 2 * lane.index + 1; }

  /// Hears a peer's alarm, of any group. Throws, where the set has ended: what `own` says if it is the operation that
  /// failed on that peer and its signature is out (`posted`), else GroupEnded.
  void check(const CollectiveRequest& own, bool posted);
  /// Ends the set, here and on every peer that still polls; the first failure wins.
  void fail(const Failure& failure) noexcept;

 private:
  static constexpr int kAlarmTag = 2 * Lane::kCount;
  /// A Failure as a message; small enough that MPI sends it at once.
  struct Alarm {
    Failure::Kind kind = Failure::Kind::none;
    Lane lane;
    std::uint64_t sequence = 0;
    std::array<char, 1000> text{};
  };

  void listen();
  void ring() noexcept;

  std::shared_ptr<MpiRuntime> runtime_;
  MPI_Comm comm_;
  std::chrono::milliseconds deadline_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  Failure failure_;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  Alarm heard_, rung_;
};

}  // namespace headroom::detail
