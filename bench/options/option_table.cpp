#include "options/option_table.hpp"

#include "options/input_error.hpp"
#include "options/values.hpp"

#include <limits>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxCount = 1'000'000;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 20;

// `member` is a generic lambda that returns a reference into a Config.
template <class Member>
Option whole(const char* group, const char* key, const char* help, Member member, std::int64_t min, std::int64_t max) {
  const auto set = [=](Config& config, std::string_view text) {
    using T = std::remove_reference_t<decltype(member(config))>;
    member(config) = static_cast<T>(parse_whole(key, text, min, max));
  };
  return {group, key, "N", help, set, [=](const Config& config) { return Json(member(config)); }};
}

template <class Member>
Option seed(const char* group, const char* key, const char* help, Member member) {
  return {group,
          key,
          "N",
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_seed(key, text); },
          [=](const Config& config) { return Json(member(config)); }};
}

template <class Member>
Option real(const char* group, const char* key, const char* help, Member member, RealRange range) {
  return {group,
          key,
          "X",
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_real(key, text, range); },
          [=](const Config& config) { return Json(member(config)); }};
}

/// The enumerators of the member's type, in order, are spelled `names`.
template <class Member>
Option choice(const char* group, const char* key, const char* help, Member member, std::vector<std::string> names) {
  std::string value_help = help;
  value_help += ": ";
  for (const std::string& name : names) value_help += (name == names.front() ? "" : ", ") + name;
  const auto set = [=](Config& config, std::string_view text) {
    using T = std::remove_reference_t<decltype(member(config))>;
    member(config) = static_cast<T>(parse_choice(key, text, names));
  };
  return {group,  key,
          "NAME", value_help,
          set,    [=](const Config& config) { return Json(names.at(static_cast<std::size_t>(member(config)))); }};
}

/// An option of which one value exists.
Option only(const char* group, const char* key, const char* help, const Json& value) {
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
  return {group,
          key,
          "NAME",
          std::string(help) + ": " + name,
          [=](Config&, std::string_view text) { static_cast<void>(parse_choice(key, text, {name})); },
          [=](const Config&) { return value; }};
}

template <class Member>
Option path(const char* group, const char* key, const char* value_name, const char* help, Member member, bool writes) {
  return {group,
          key,
          value_name,
          help,
          [=](Config& config, std::string_view text) { member(config) = parse_path(key, text); },
          [=](const Config& config) { return member(config).empty() ? Json(nullptr) : Json(member(config)); },
          Option::Kind::single,
          writes};
}

template <class Member>
Option limit(const char* key, const char* help, Member member) {
  const auto set = [=](Config& config, std::string_view text) {
    if (text == "off") {
      member(config).reset();
      return;
    }
    try {
      member(config) = static_cast<int>(parse_whole(key, text, 1, kMaxCount));
    } catch (const InvalidInput&) {
      throw bad_input(std::string("--") + key, "a whole number from 1 to " + std::to_string(kMaxCount) + ", or off",
                      in_quotes(text));
    }
  };
  return {"Schedule", key, "N|off",
          help,       set, [=](const Config& config) { return member(config) ? Json(*member(config)) : Json("off"); }};
}

void set_keep(Config& config, std::string_view text) {
  using Keep = PrefetchOptions::Keep;
  config.prefetch.keep_units.clear();
  config.prefetch.keep = text == "none"   ? Keep::none
                         : text == "last" ? Keep::last
                         : text == "all"  ? Keep::all
                                          : Keep::named;
  if (config.prefetch.keep != Keep::named) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      throw bad_input("--keep-after-forward", "none, last, all, or unit names with commas", in_quotes(text));
    config.prefetch.keep_units.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

Json get_keep(const Config& config) {
  switch (config.prefetch.keep) {
    case PrefetchOptions::Keep::none: return "none";
    case PrefetchOptions::Keep::last: return "last";
    case PrefetchOptions::Keep::all: return "all";
    case PrefetchOptions::Keep::named: break;
  }
  std::string names;
  for (const std::string& name : config.prefetch.keep_units) names += (names.empty() ? "" : ",") + name;
  return names;
}

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
  table.push_back(choice("Machine", "executor", "how host streams run; seeded reorders what may be reordered",
                         [](auto& c) -> auto& { return c.host.executor; }, {"threads", "seeded"}));
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
  table.push_back(only("Model", "workload", "what is trained", "gpt"));
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
  table.push_back(only(group, "shard", "what is sharded", "full_shard"));
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
  table.push_back(only(group, "buffers", "where the schedule's buffers come from", "planned"));
  table.push_back(only(group, "communicators", "gathers and reductions on one or two", 2));
  table.push_back(only(group, "accumulation", "where gradients live between micro-batches", "sharded"));
  table.push_back(only(group, "gathered", "dtype of gathered parameters", "f32"));
  table.push_back(only(group, "reduced", "dtype of reduced gradients", "f32"));
}

void add_outputs(std::vector<Option>& table) {
  const char* group = "Output";
  table.push_back(path(
      group, "export", "DIR", "write the trained model as a Hugging Face GPT-2 folder",
      [](auto& c) -> auto& { return c.export_dir; }, true));
  table.push_back(path(
      group, "json", "FILE", "the report; - is stdout", [](auto& c) -> auto& { return c.json_path; }, true));
  table.push_back(path(
      group, "trace", "FILE", "Chrome/Perfetto trace; {rank} in a name is replaced, without it rank 0 writes",
      [](auto& c) -> auto& { return c.trace_path; }, true));
  table.push_back(path(
      group, "events", "FILE", "raw allocator events; {rank} as above", [](auto& c) -> auto& { return c.events_path; },
      true));
  Option quiet{group,
               "quiet",
               "",
               "no progress line on stderr",
               [](Config& config, std::string_view text) {
                 config.quiet = parse_choice("quiet", text, {"false", "true"}) == 1;
               },
               [](const Config& config) { return Json(config.quiet); },
               Option::Kind::flag};
  table.push_back(std::move(quiet));
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
