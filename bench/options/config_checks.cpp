#include "options/config_checks.hpp"

#include "options/input_error.hpp"
#include "options/values.hpp"

#include <algorithm>

namespace headroom::bench {
namespace {

void check_shape(const Config& config) {
  const ModelShape& model = config.model;
  if (model.width % model.heads != 0)
    throw bad_input("--heads", "a divisor of --width " + std::to_string(model.width), std::to_string(model.heads));
  if (model.positions < config.seq)
    throw bad_input("--positions", "at least --seq " + std::to_string(config.seq), std::to_string(model.positions));
  if (config.wrap.blocks > model.layers)
    throw bad_input("--wrap", "at most --layers " + std::to_string(model.layers) + " blocks a unit",
                    std::to_string(config.wrap.blocks));
}

// In floating point, where products of checked extents cannot overflow.
void check_sizes(const Config& config) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = real(config.model.width);
  const double rows = real(config.micro_batch) * real(config.seq);
  const double parameters = width * real(config.model.vocab + config.model.positions + 2) +
                            real(config.model.layers) * width * (12 * width + 13);
  const double samples = real(config.steps) * real(config.accumulate) * real(config.micro_batch);
  constexpr double kMaxParameters = 1099511627776.0;  // 2^40: 16 TiB with gradients and moments.
  constexpr double kMaxRows = 2147483647.0;           // BLAS counts rows in 32 bits.
  constexpr double kMaxActivation = 2199023255552.0;  // 2^41 elements of one activation.
  constexpr double kMaxSamples = 70368744177664.0;    // 2^46 a rank.
  if (parameters > kMaxParameters)
    throw bad_input("--layers, --width, --vocab and --positions", "a model of at most 2^40 parameters",
                    to_text(parameters));
  if (rows > kMaxRows)
    throw bad_input("--micro-batch times --seq", "at most 2^31 - 1 tokens a micro-batch", to_text(rows));
  if (rows * 4 * width > kMaxActivation)
    throw bad_input("--micro-batch, --seq and --width", "at most 2^41 elements of one activation",
                    to_text(rows * 4 * width));
  if (samples > kMaxSamples)
    throw bad_input("--steps, --accumulate and --micro-batch", "at most 2^46 windows a rank", to_text(samples));
}

void check_strategy(const Config& config) {
  if (config.strategy != ShardStrategy::no_shard) return;
  const char* hint = "With no_shard every rank has all parameters: nothing is gathered.";
  if (config.gathered != DType::f32) throw bad_input("--gathered", "f32 with --shard no_shard", "'bf16'", hint);
  if (config.prefetch.keep != PrefetchOptions::Keep::none)
    throw bad_input("--keep-after-forward", "none with --shard no_shard", "units to keep", hint);
}

}  // namespace

// What only one workload has, and was not left alone, would be ignored by the others.
void check_workload(const Config& config) {
  if (config.workload != WorkloadKind::branching && config.branches != Branches::known)
    throw bad_input("--branches", "--workload branching", "another workload", "The others have one path.");
  if (config.workload == WorkloadKind::gpt) return;
  const char* hint = "The other workloads are no GPT-2.";
  if (config.wrap.kind != Wrap::Kind::block) throw bad_input("--wrap", "--workload gpt", "another workload", hint);
  if (!config.init_dir.empty()) throw bad_input("--init", "--workload gpt", "another workload", hint);
  if (!config.export_dir.empty()) throw bad_input("--export", "--workload gpt", "another workload", hint);
}

void check_config(const Config& config) {
  if (config.host.executor == Executor::none && !config.export_dir.empty())
    throw bad_input("--export", "an --executor that computes", "'none'");
  check_shape(config);
  check_sizes(config);
  check_strategy(config);
}

void check_kept_units(const Config& config, const std::vector<std::string>& unit_names) {
  for (const std::string& name : config.prefetch.keep_units) {
    if (std::find(unit_names.begin(), unit_names.end(), name) == unit_names.end())
      throw bad_input("--keep-after-forward",
                      "units of the model (" + unit_names.front() + " ... " + unit_names.back() + ")", in_quotes(name));
  }
}

void check_world(const Config& config, int world) {
  if (config.strategy != ShardStrategy::hybrid) return;
  const std::string found = "groups of " + std::to_string(config.hybrid_ranks);
  if (world == 1) throw bad_input("--shard", "full_shard or no_shard on one rank", found, "Nothing is sharded there.");
  if (world % config.hybrid_ranks != 0)
    throw bad_input("--shard", "groups that divide the world of " + std::to_string(world) + " ranks", found);
}

}  // namespace headroom::bench
