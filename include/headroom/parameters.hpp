#pragma once

#include <headroom/communicator.hpp>
#include <headroom/layout.hpp>
#include <headroom/step.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

/// Whether a path's visits are known before its steps. `fixed`: as declared, or as learned from its first step.
/// `dynamic`: they may differ from step to step, on all ranks alike.
enum class Path : std::uint8_t { fixed, dynamic };

struct StepOptions {
  std::string path = "default";
  Path kind = Path::fixed;
  std::uint64_t data_cursor = 0;  ///< Global sample count; must be equal on all ranks.
};

/// Where the buffers of gathered sets and gradients come from. `planned`: slots, packed from the schedule. `observed`:
/// PyTorch FSDP1's way, the caching allocator at each gather; reused once the host has seen a release complete.
enum class Buffers : std::uint8_t { planned, observed };

struct ParameterOptions {
  std::uint64_t seed = 1;
  int micro_batches = 1;
  ShardStrategy strategy = ShardStrategy::full_shard;  ///< As the communicators' groups are.
  Accumulation accumulation = Accumulation::sharded;
  DType gathered = DType::f32;  ///< Or bf16: of gathered sets, so of leases' parameters where there is a gather.
  DType reduced = DType::f32;   ///< Or bf16: of gradients on the wire. Masters and gradient shards are always f32.
  Buffers buffers = Buffers::planned;
  bool verify = false;  ///< At each visit, compare the gathered set's checksum with its owners'.
};

/// What is known of one path.
struct PathStatus {
  std::string name;
  bool declared = false;
  std::int64_t steps = 0;    ///< Committed with it.
  std::string prefetch_off;  ///< Why nothing is gathered ahead in it, whatever the policy; else empty.
};

/// A full parameter set or full gradient as it lived: between a ticket's start and another's completion.
struct SetLifetime {
  bool gradient = false;
  int unit = -1;
  StreamId begin_stream = 0, end_stream = 0;
  Ticket begin = 0, end = 0;
};

/// Owns the sharded parameters of one model on one rank and runs its schedule. Not thread-safe: one issuing thread.
/// `memory` and the stream must outlive it; planned buffers are slots of `memory`, so of one manager at a time. Its end
/// answers the peers' next agreement with "left".
class ParameterManager {
 public:
  ParameterManager(Communicators communicators, CachingAllocator& memory, StreamRef compute,
                   const ParameterOptions& options = {});
  ~ParameterManager();
  ParameterManager(const ParameterManager&) = delete;
  ParameterManager& operator=(const ParameterManager&) = delete;

  /// Allocates and initialises this rank's shard. Throws: OutOfMemory; InvalidInput; std::logic_error after prepare().
  int add_unit(std::string_view name, std::vector<ParameterSpec> parameters);
  /// The order of visits; "default", unless declared: all units as added, and backward in reverse. Throws:
  /// InvalidInput.
  void declare_path(const std::string& name, std::vector<int> forward, std::vector<int> backward);
  /// Takes effect at the next prepare() or begin_step(). Until set: BACKWARD_PRE, one visit ahead in forward, limits of
  /// 2, as the program's defaults.
  void set_policy(std::shared_ptr<const SchedulePolicy> policy);
  /// Plans every path, agrees with all ranks on parameters, schedules and options, and takes all the memory that a
  /// step's collectives need. begin_step does it if it was not done. Throws, on all ranks: InvalidInput, OutOfMemory,
  /// CollectiveMismatch naming the first difference.
  void prepare();

  /// Agrees with all ranks on {epoch, path} first. A path that was not declared runs its first step, and a dynamic one
  /// every step, without prefetch: all ranks agree on each visit, and on its status, before its collectives. Throws:
  /// StepAborted where a peer left, or for a step dropped before.
  [[nodiscard]] StepTransaction begin_step(const StepOptions& options = {});
  /// Ends training: every rank must come here. Throws, on all ranks, StepAborted where one does not.
  void finish();

  [[nodiscard]] int unit_count() const noexcept;
  [[nodiscard]] const FlatLayout& layout(int unit) const;
  [[nodiscard]] std::int64_t parameter_count() const noexcept;
  [[nodiscard]] const Schedule& schedule(const std::string& path = "default") const;  ///< The steady one.
  [[nodiscard]] std::vector<PathStatus> paths() const;
  [[nodiscard]] std::int64_t epoch() const noexcept;  ///< Steps committed.

  /// Overwrites one logical parameter (this rank keeps its part). Blocks. Shapes: values [numel].
  void write(int unit, int parameter, std::span<const float> values);
  /// Calls `visit(parameter, values)` for each logical parameter of the unit, gathered through the step's own slots.
  /// Collective, between steps; blocks. `visit` may be empty where this rank needs nothing.
  void read(int unit, const std::function<void(int, std::span<const float>)>& visit);
  /// CRC32C of all logical parameters in registration order, f32 little-endian. Collective; blocks; equal on all ranks.
  [[nodiscard]] std::uint32_t crc32c();

  /// The most full sets that were live at once so far, by issue order. take_lifetimes: those of the steps since the
  /// last call (at most 65,536 of them), for device time (live_sets_peak).
  [[nodiscard]] int parameter_sets_peak() const noexcept;
  [[nodiscard]] int gradient_sets_peak() const noexcept;
  [[nodiscard]] std::vector<SetLifetime> take_lifetimes();
  /// With `verify`: checksums of gathered slices that were compared so far, all of them equal.
  [[nodiscard]] std::uint64_t checksums_compared() const noexcept;

 private:
  friend class AdamW;
  std::shared_ptr<detail::ManagerState> state_;
};

/// The most full sets that were live at one instant of device time, from their lifetimes and the trace that ran them.
[[nodiscard]] int live_sets_peak(std::span<const SetLifetime> lifetimes, bool gradients, const Trace& trace);

}  // namespace headroom
