#pragma once

#include <headroom/error.hpp>
#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace headroom {

// The contract of every collective, on every backend: all ranks call the same ones in the same order with the same
// dtype and counts; the call returns once the work is on `stream`, and its ticket completes only when no peer can still
// read this rank's send buffer or write its receive buffer. Sums are made in rank order, so results are bitwise
// repeatable. A count of 0 is allowed. A mismatch, or a peer that does not arrive within the deadline, is an error of
// that stream on every rank that can know, never a hang; every other operation of the same set then ends with an error
// of that type.

/// One rank's end of a process group: all ranks of the world, or some. Errors name ranks by their place in the world.
/// Throws: std::logic_error on a shape or dtype that cannot be, before anything is enqueued; on the stream
/// CollectiveMismatch, DeadlineExceeded. Thread-safety: one thread and one stream per communicator, but abort() may
/// come from any.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// Of the group, as `root` and the order of slices are.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;

  /// Shapes: send [n], recv [size * n]. `send` may be this rank's own slice of `recv`.
  virtual void all_gather(TensorView send, TensorView recv, StreamRef stream, int unit = -1) = 0;
  /// Shapes: send [size * n], recv [n], f32 or bf16 (summed in f32, rounded once). `recv` may be this rank's own slice
  /// of `send`. The contents of `send` are undefined afterwards.
  virtual void reduce_scatter(TensorView send, TensorView recv, StreamRef stream, int unit = -1) = 0;
  /// Shapes: buffer [n], f32, f64 or bf16, in place; a sum. `scratch`: at least
  /// all_reduce_scratch_bytes(buffer.bytes()).
  virtual void all_reduce(TensorView buffer, TensorView scratch, StreamRef stream, int unit = -1) = 0;
  virtual void broadcast(TensorView buffer, int root, StreamRef stream) = 0;
  [[nodiscard]] virtual std::size_t all_reduce_scratch_bytes(std::size_t bytes) const noexcept = 0;

  /// Elementwise maximum over the ranks; at most 64 words. Blocks the caller. Throws: DeadlineExceeded,
  /// CollectiveMismatch.
  virtual void agree(std::span<std::uint64_t> words) = 0;
  /// Copies `bytes` from `root` to all; at most 4096 bytes. Blocks the caller.
  virtual void share(std::span<std::byte> bytes, int root) = 0;
  /// Ends every pending and later collective of this set, on every rank that can hear it, with CommunicatorError.
  virtual void abort(const char* reason) noexcept = 0;

  /// Bytes that this rank's completed collectives put on, and took off, the wire.
  [[nodiscard]] virtual std::uint64_t bytes_sent() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes_received() const noexcept = 0;
  /// Memory of its own, outside any allocator, where peers' parts of a reduction arrive; empty: it needs none.
  [[nodiscard]] virtual std::span<const std::byte> staging() const noexcept { return {}; }
};

/// One rank's communicators. `gather` and `reduce` span its shard group; they are apart, so that they may overlap, or
/// one and the same. `replicate` spans the ranks that own the same shard, one of each group; `control`, for the host,
/// all.
struct Communicators {
  std::shared_ptr<Communicator> gather, reduce, control, replicate;
};

/// How the ranks of a set are grouped: consecutive ranks shard together.
struct GroupOptions {
  int shard_ranks = 0;        ///< Ranks of a shard group, a divisor of the world; 0: all. 1: nothing is sharded.
  bool one_for_both = false;  ///< Gathers and reductions on one communicator, and so on one stream.
  std::optional<std::chrono::milliseconds> deadline = {};  ///< In place of the job's.
};

struct CommunicatorOptions {
  std::chrono::milliseconds deadline{60'000};
};

/// This rank's place in the world: launched by mpirun, a thread of run_ranks, or alone.
class Job {
 public:
  /// Under mpirun: initialises MPI if nobody did (MPI_THREAD_MULTIPLE is required). Else world 1.
  /// Throws: CommunicatorError where MPI cannot be used.
  [[nodiscard]] static Job from_environment(const HostOptions& host = {}, const CommunicatorOptions& options = {});

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int world() const noexcept;
  [[nodiscard]] Device device() const noexcept;
  [[nodiscard]] const char* launcher() const noexcept;  ///< "mpi", "threads" or "alone".
  /// A fresh set. Collective: every rank calls it the same number of times, with equal options, and waits for the
  /// others. Throws: InvalidInput, before anything is communicated, where the groups do not divide the world;
  /// CollectiveMismatch where options differ; DeadlineExceeded.
  [[nodiscard]] Communicators communicators(const GroupOptions& groups = {}) const;
  /// Ends the process group: peers that wait for this rank learn it at once. MPI: MPI_Abort(code), does not return.
  void abort(int exit_code, const char* reason) const noexcept;

  struct State;
  explicit Job(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// True where the process was started by mpirun, before anything is initialised.
[[nodiscard]] bool launched_by_mpi() noexcept;

/// Runs `body` once a rank on `ranks` threads of this process, each with its own Device; joins them, then rethrows the
/// error of the lowest rank whose error is not a consequence of a peer's abort. Rank 0 runs on the calling thread.
void run_ranks(int ranks, const HostOptions& host, const CommunicatorOptions& options,
               const std::function<void(Job&)>& body);

}  // namespace headroom
