#include "options/option_table.hpp"

#include "options/option_kinds.hpp"
#include "options/sharding_values.hpp"

#include <limits>

namespace headroom::bench {
namespace {

Option device() {
  const auto set = [](Config& config, std::string_view text) {
    static_cast<void>(parse_choice("device", text, {"auto", "host"}));
    config.device = DeviceKind::host;
  };
  return {
      "Machine", "device", "NAME", "where tensors live: auto, host", set, [](const Config&) { return Json("host"); }};
}

void add_machine(std::vector<Option>& table) {
  table.push_back(device());
  table.push_back(whole(
      "Machine", "ranks", "ranks as threads of this process; under mpirun the launcher gives them",
      [](auto& c) -> auto& { return c.ranks; }, 1, 256));
  table.push_back(only("Machine", "host-threads", "compute threads of a rank", 1));
  table.push_back(
      choice("Machine", "executor",
             "how host streams run; seeded reorders what may be reordered, none computes nothing (to record memory)",
             [](auto& c) -> auto& { return c.host.executor; }, {"threads", "seeded", "none"}));
  table.push_back(seed(
      "Machine", "executor-seed", "the order that the seeded executor draws",
      [](auto& c) -> auto& { return c.host.seed; }));
  table.push_back(
      {"Machine", "memory-limit", "SIZE", "of one rank's memory: 1000000, 512MiB, 2GiB",
       [](Config& config, std::string_view text) { config.memory_limit_bytes = parse_size("memory-limit", text); },
       [](const Config& config) {
         return config.memory_limit_bytes == 0 ? Json(nullptr) : Json(config.memory_limit_bytes);
       }});
  table.push_back({"Machine", "deadline", "SECONDS", "how long a rank waits for its peers before exit 86",
                   [](Config& config, std::string_view text) {
                     const double seconds = parse_real("deadline", text, {0.001, 1e6, false, false});
                     config.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
                   },
                   [](const Config& config) { return Json(static_cast<double>(config.deadline.count()) / 1000); }});
}

void add_model_and_data(std::vector<Option>& table) {
  table.push_back(choice("Model", "workload", "what is trained", [](auto& c) -> auto& { return c.workload; },
                         {"gpt", "irregular", "branching"}));
  table.push_back(choice("Model", "branches", "of branching: declared, learned, or drawn from the data",
                         [](auto& c) -> auto& { return c.branches; }, {"known", "learned", "data"}));
  table.push_back(
      {"Data", "data", "PATH",
       "a text, a .bin of u16 tokens, or a folder of them; repeatable (without: text that the program makes)",
       [](Config& config, std::string_view text) { config.data.push_back(parse_path("data", text)); },
       [](const Config& config) { return Json(config.data); }, Option::Kind::collecting});
  table.push_back(choice("Data", "order", "of the text's windows", [](auto& c) -> auto& { return c.order; },
                         {"shuffled", "sequential"}));
  table.push_back(whole(
      "Model", "layers", "blocks", [](auto& c) -> auto& { return c.model.layers; }, 1, 100'000));
  table.push_back(whole(
      "Model", "width", "channels", [](auto& c) -> auto& { return c.model.width; }, 1, kMaxExtent));
  table.push_back(whole(
      "Model", "heads", "attention heads; they divide the width", [](auto& c) -> auto& { return c.model.heads; }, 1,
      kMaxExtent));
  table.push_back(whole(
      "Model", "vocab", "tokens that the model knows", [](auto& c) -> auto& { return c.model.vocab; }, 1,
      std::int64_t{1} << 24));
  table.push_back(whole(
      "Model", "positions", "longest sequence; without it, as --seq",
      [](auto& c) -> auto& { return c.model.positions; }, 1, kMaxExtent));
  table.push_back(whole(
      "Run", "seq", "tokens of a window", [](auto& c) -> auto& { return c.seq; }, 1, kMaxExtent));
  table.push_back(whole(
      "Run", "micro-batch", "windows of a rank's micro-batch", [](auto& c) -> auto& { return c.micro_batch; }, 1,
      kMaxExtent));
  table.push_back(whole(
      "Run", "accumulate", "micro-batches of a step", [](auto& c) -> auto& { return c.accumulate; }, 1, 65'536));
  table.push_back(whole(
      "Run", "steps", "optimizer steps", [](auto& c) -> auto& { return c.steps; }, 1, 1'000'000'000));
  table.push_back(seed(
      "Run", "seed", "of parameters and of the order of data", [](auto& c) -> auto& { return c.seed; }));
  table.push_back(path(
      "Model", "init", "DIR", "start from a Hugging Face GPT-2 folder, which also sets the shape",
      [](auto& c) -> auto& { return c.init_dir; }, false));
}

void add_optimizer(std::vector<Option>& table) {
  constexpr double kLargest = 1e6;
  const char* group = "Optimizer";
  table.push_back(real(group, "lr", "learning rate", [](auto& c) -> auto& { return c.adamw.learning_rate; },
                       {0, kLargest, false, false}));
  table.push_back(real(group, "beta1", "decay of the first moment", [](auto& c) -> auto& { return c.adamw.beta1; },
                       {0, 1, false, true}));
  table.push_back(real(group, "beta2", "decay of the second moment", [](auto& c) -> auto& { return c.adamw.beta2; },
                       {0, 1, false, true}));
  table.push_back(real(group, "eps", "added to the second moment's root",
                       [](auto& c) -> auto& { return c.adamw.epsilon; },
                       {std::numeric_limits<double>::min(), kLargest, false, false}));
  table.push_back(real(group, "weight-decay", "of parameters of two or more dimensions",
                       [](auto& c) -> auto& { return c.adamw.weight_decay; }, {0, kLargest, false, false}));
  table.push_back(real(group, "clip", "largest global gradient norm; 0 is off",
                       [](auto& c) -> auto& { return c.adamw.clip_norm; }, {0, 1e30, false, false}));
}

void add_schedule(std::vector<Option>& table) {
  const char* group = "Schedule";
  table.push_back(
      {group, "shard", "NAME",
       "full_shard, shard_grad_op (kept from forward to backward), no_shard, hybrid(N) (in groups of N ranks)",
       set_shard, get_shard});
  table.push_back({group, "wrap", "UNIT",
                   "what makes a unit of gpt: block, half (attention and MLP apart), or K blocks", set_wrap, get_wrap});
  table.push_back(choice(group, "backward-prefetch", "when backward gathers the next unit",
                         [](auto& c) -> auto& { return c.backward_prefetch; }, {"none", "pre", "post"}));
  table.push_back(whole(
      group, "forward-prefetch", "visits gathered ahead in forward",
      [](auto& c) -> auto& { return c.prefetch.forward_prefetch; }, 0, kMaxCount));
  table.push_back(limit(
      "limit-all-gathers", "releases not yet seen complete, before a gather waits",
      [](auto& c) -> auto& { return c.prefetch.limit_all_gathers; }));
  table.push_back(limit(
      "limit-reduce-scatters", "reductions not yet complete, before a backward waits",
      [](auto& c) -> auto& { return c.prefetch.limit_reduce_scatters; }));
  table.push_back({group, "keep-after-forward", "UNITS",
                   "not released before backward: none, last, all, or unit names with commas", set_keep, get_keep});
  table.push_back(choice(group, "buffers", "where the schedule's buffers come from",
                         [](auto& c) -> auto& { return c.buffers; }, {"planned", "observed"}));
  table.push_back(whole(
      group, "communicators", "gathers and reductions on one or on two",
      [](auto& c) -> auto& { return c.communicators; }, 1, 2));
  table.push_back(choice(group, "accumulation", "where gradients live between micro-batches",
                         [](auto& c) -> auto& { return c.accumulation; }, {"sharded", "full"}));
  const std::vector<std::string> dtypes{"f32", "bf16"};
  table.push_back(choice(
      group, "gathered", "dtype of gathered parameters", [](auto& c) -> auto& { return c.gathered; }, dtypes));
  table.push_back(choice(
      group, "reduced", "dtype of reduced gradients", [](auto& c) -> auto& { return c.reduced; }, dtypes));
  table.push_back(choice(group, "recompute", "of activations in backward; unit keeps a unit's input only",
                         [](auto& c) -> auto& { return c.recompute; }, {"none", "unit"}));
  table.push_back(flag(
      group, "verify", "compare each gathered set's checksum with its owners'",
      [](auto& c) -> auto& { return c.verify; }));
}

void add_outputs(std::vector<Option>& table) {
  const char* group = "Output";
  table.push_back(path(
      group, "export", "DIR", "write the trained model as a Hugging Face GPT-2 folder",
      [](auto& c) -> auto& { return c.export_dir; }, true));
  table.push_back(path(
      group, "json", "FILE", "the report; - is stdout", [](auto& c) -> auto& { return c.json_path; }, true));
  table.push_back(path(
      group, "events", "FILE",
      "recording of allocator events and operations; {rank} in a name is replaced, without it rank 0 writes",
      [](auto& c) -> auto& { return c.events_path; }, true));
  table.push_back(path(
      group, "snapshot", "FILE", "PyTorch memory snapshot (.pickle), for memory_viz; {rank} as above",
      [](auto& c) -> auto& { return c.snapshot_path; }, true));
  table.push_back(path(
      group, "report", "FILE", "live memory and streams as a web page (.html); {rank} as above",
      [](auto& c) -> auto& { return c.report_path; }, true));
  table.push_back(path(
      group, "png", "FILE", "live memory of the peak's step as a picture; {rank} as above",
      [](auto& c) -> auto& { return c.png_path; }, true));
  table.push_back(path(
      group, "trace", "FILE", "Chrome/Perfetto trace of one rank for each {rank}, without it of all ranks",
      [](auto& c) -> auto& { return c.trace_path; }, true));
  table.push_back(flag(
      group, "quiet", "no progress line on stderr", [](auto& c) -> auto& { return c.quiet; }));
  const std::vector<std::string> levels{"trace", "debug", "info", "warn", "error", "off"};
  table.push_back({group, "log-level", "NAME", "on stderr: trace, debug, info, warn, error, off",
                   [=](Config& config, std::string_view text) {
                     config.log_level = levels[parse_choice("log-level", text, levels)];
                   },
                   [](const Config& config) { return Json(config.log_level); }});
}

}  // namespace

std::vector<Option> option_table() {
  std::vector<Option> table;
  add_machine(table);
  add_model_and_data(table);
  add_optimizer(table);
  add_schedule(table);
  add_outputs(table);
  return table;
}

}  // namespace headroom::bench
