#pragma once

#include <headroom/device.hpp>
#include <headroom/optimizer.hpp>
#include <headroom/parameters.hpp>
#include <headroom/schedule.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::bench {

enum class Order : std::uint8_t { shuffled, sequential };
enum class WorkloadKind : std::uint8_t { gpt, irregular, branching };
/// How `branching` tells its paths: declared at start, each learned from its first step, or drawn from the data.
enum class Branches : std::uint8_t { known, learned, data };
/// Rematerialization; `unit`: only a unit's input is kept, backward runs its forward again.
enum class Recompute : std::uint8_t { none, unit };

/// What makes a unit of `gpt`.
struct Wrap {
  enum class Kind : std::uint8_t { block, half, blocks } kind = Kind::block;
  int blocks = 1;  ///< Of a unit, with Kind::blocks.

  /// A block has two halves, attention and MLP.
  [[nodiscard]] int halves_per_unit() const noexcept { return kind == Kind::half ? 1 : 2 * blocks; }
};

struct ModelShape {
  std::int64_t layers = 8, width = 512, heads = 8, vocab = 256, positions = 256;
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// One option as it was given: its long name without dashes, and its text.
struct Setting {
  std::string key, value;
};

/// Every option of a run, checked and resolved: what a command may rely on. Made by make_config only.
struct Config {
  DeviceKind device = DeviceKind::host;
  HostOptions host;  ///< --executor, --executor-seed
  int ranks = 1;     ///< Under mpirun: what the launcher gave.
  std::vector<std::string> data;
  Order order = Order::shuffled;
  WorkloadKind workload = WorkloadKind::gpt;
  Branches branches = Branches::known;
  Wrap wrap;
  ModelShape model;  ///< With --init: what its config.json says.
  std::int64_t seq = 256, micro_batch = 4, accumulate = 1, steps = 20;
  std::uint64_t seed = 1;
  std::string init_dir;  ///< Empty: none. So with every path.
  AdamWOptions adamw;
  ShardStrategy strategy = ShardStrategy::full_shard;
  int hybrid_ranks = 0;  ///< Ranks of a shard group, with ShardStrategy::hybrid.
  Accumulation accumulation = Accumulation::sharded;
  DType gathered = DType::f32, reduced = DType::f32;
  Recompute recompute = Recompute::none;
  Buffers buffers = Buffers::planned;
  int communicators = 2;
  bool verify = false;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  PrefetchOptions prefetch{1, 2, 2, PrefetchOptions::Keep::none, {}};
  std::size_t memory_limit_bytes = 0;  ///< 0: none.
  std::chrono::milliseconds deadline{60'000};
  std::string export_dir, json_path, trace_path, events_path, snapshot_path;  ///< json: "-" is stdout.
  std::string report_path, png_path;
  bool quiet = false;
  std::string log_level = "warn";

  std::vector<Setting> given;  ///< What was set by the user, in the order of the options' table.

  [[nodiscard]] bool is_given(std::string_view key) const noexcept;
  /// The same run with other values: each key of `settings` replaces what was given for it, and everything is resolved
  /// and checked again. Throws: InvalidInput, with the text that the command line gives.
  [[nodiscard]] Config with(const std::vector<Setting>& settings) const;
  [[nodiscard]] std::shared_ptr<const SchedulePolicy> policy() const;
  [[nodiscard]] int shard_ranks(int world) const noexcept;  ///< Ranks that share one copy of the parameters.
  [[nodiscard]] ParameterOptions parameter_options() const;
  [[nodiscard]] GroupOptions group_options(int world) const;
};

/// Resolves and checks. A key given twice takes its last value; `data` collects. `unit_names`: the units that
/// keep-after-forward may name; empty: those of the model. Throws: InvalidInput naming option, expected and found.
[[nodiscard]] Config make_config(const std::vector<Setting>& settings, const std::vector<std::string>& unit_names = {});

/// What the number of ranks decides. Throws: InvalidInput on groups of --shard hybrid(N) that do not divide it.
void check_world(const Config& config, int world);

/// "K=V K=V ..." as `ab --a` takes it; empty is allowed. Throws: InvalidInput on a part without '='.
[[nodiscard]] std::vector<Setting> parse_settings(std::string_view option, std::string_view text);

/// Every option in its spelling, resolved, in the order of the table: numbers as numbers, "off" and names as strings,
/// paths that were not given as null.
[[nodiscard]] nlohmann::ordered_json to_json(const Config& config);

}  // namespace headroom::bench
