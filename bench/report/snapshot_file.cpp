#include "report/snapshot_file.hpp"

#include "io/output_file.hpp"
#include "options/input_error.hpp"
#include "options/json_text.hpp"
#include "report/pickle.hpp"
#include "report/snapshot_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

using Action = SnapshotEntry::Action;

constexpr std::array kActions{"alloc", "free_requested", "free_completed", "segment_map", "segment_unmap",
                              "oom",   "snapshot"};

/// As torch.profiler calls it.
const char* profiler_category(Tag tag) {
  if (tag <= Tag::parameter_full_releasing) return "parameter";
  if (tag <= Tag::gradient_shard) return "gradient";
  switch (tag) {
    case Tag::optimizer_state: return "optimizer_state";
    case Tag::activation: return "activation";
    case Tag::input: return "input";
    case Tag::workspace:
    case Tag::communication: return "temporary";
    default: return "unknown";
  }
}

std::string as_utf8(const std::string& text) {
  const bool is_ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80U; });
  return is_ascii ? text : nlohmann::json::parse(dump(text)).get<std::string>();
}

class Writer {
 public:
  Writer(PickleWriter& out, const RecordingReader& reader, const SnapshotState& state)
      : out_(out), reader_(reader), state_(state) {}

  void write(const SnapshotOptions& options) {
    out_.begin_dictionary();
    out_.text("segments");
    out_.begin_list();
    for (const auto& [from, to] : state_.mapped()) write_segment(from, to);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    out_.begin_list();
    for (const SnapshotEntry& entry : state_.entries()) write_entry(entry);
    out_.end_list();
    out_.end_list();
    out_.text("allocator_settings");
    write_settings(options);
    out_.text("external_annotations");
    out_.begin_list();
    out_.end_list();
    out_.end_dictionary();
    out_.finish();
  }

 private:
  [[nodiscard]] std::string unit_name(std::int32_t unit) const {
    const std::vector<std::string>& units = reader_.info().units;
    return unit >= 0 && static_cast<std::size_t>(unit) < units.size() ? as_utf8(units[static_cast<std::size_t>(unit)])
                                                                      : "no unit";
  }
  [[nodiscard]] std::string name(std::uint32_t index) const {
    return index < reader_.names().size() ? as_utf8(reader_.names()[index]) : "";
  }

  void frame(const std::string& file, std::int64_t line, const std::string& text) {
    out_.begin_dictionary();
    out_.item("filename", file);
    out_.item("line", line);
    out_.item("name", text);
    out_.end_dictionary();
  }

  void frames(const SnapshotSite& site) {
    if (const auto known = sites_.find(site); known != sites_.end()) return out_.again(known->second);
    out_.begin_list();
    frame(unit_name(site.unit), std::max<std::int64_t>(site.step, 0), name(site.name));
    frame("step", std::max<std::int64_t>(site.step, 0), name(site.mark));
    out_.end_list();
    sites_.emplace(site, out_.memoize());
  }

  void no_frames() {
    out_.text("frames");
    out_.begin_list();
    out_.end_list();
  }

  void write_segment(std::uint64_t from, std::uint64_t to) {
    const auto begin = state_.blocks().lower_bound(from), end = state_.blocks().lower_bound(to);
    std::int64_t allocated = 0, active = 0, requested = 0;
    std::for_each(begin, end, [&](const auto& placed) {
      const SnapshotBlock& block = placed.second;
      allocated += block.pending ? 0 : static_cast<std::int64_t>(block.bytes);
      active += static_cast<std::int64_t>(block.bytes);
      requested += static_cast<std::int64_t>(block.requested_bytes);
    });
    out_.begin_dictionary();
    out_.item("device", 0);
    out_.item("address", static_cast<std::int64_t>(from));
    out_.item("total_size", static_cast<std::int64_t>(to - from));
    out_.item("allocated_size", allocated);
    out_.item("active_size", active);
    out_.item("requested_size", requested);
    out_.item("stream", 0);
    out_.item("segment_type", "large");
    out_.text("segment_pool_id");
    out_.pair(0, 0);
    out_.text("is_expandable");
    out_.boolean(true);
    no_frames();
    out_.text("blocks");
    out_.begin_list();
    std::uint64_t at = from;
    std::for_each(begin, end, [&](const auto& placed) {
      write_free(at, placed.first);
      write_block(placed.second);
      at = placed.first + placed.second.bytes;
    });
    write_free(at, to);
    out_.end_list();
    out_.end_dictionary();
  }

  void write_free(std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    out_.begin_dictionary();
    out_.item("address", static_cast<std::int64_t>(from));
    out_.item("size", static_cast<std::int64_t>(to - from));
    out_.item("requested_size", 0);
    out_.item("state", "inactive");
    no_frames();
    out_.end_dictionary();
  }

  void write_block(const SnapshotBlock& block) {
    out_.begin_dictionary();
    out_.item("address", static_cast<std::int64_t>(block.address));
    out_.item("size", static_cast<std::int64_t>(block.bytes));
    out_.item("requested_size", static_cast<std::int64_t>(block.requested_bytes));
    out_.item("state", block.pending ? "active_pending_free" : "active_allocated");
    out_.text("frames");
    frames(block.site);
    out_.end_dictionary();
  }

  void write_entry(const SnapshotEntry& entry) {
    const bool of_pages = entry.action == Action::segment_map || entry.action == Action::segment_unmap;
    const bool of_block = !of_pages && entry.action != Action::snapshot;
    out_.begin_dictionary();
    out_.item("action", kActions[static_cast<std::size_t>(entry.action)]);
    out_.item(entry.action == Action::oom ? "device_free" : "addr", static_cast<std::int64_t>(entry.address));
    out_.item("size", static_cast<std::int64_t>(entry.bytes));
    out_.item("stream", entry.stream);
    out_.item("time_us", entry.time_us);
    out_.item("compile_context", "");
    out_.item("user_metadata", of_block ? name_of(entry.tag) : "");
    out_.text("pool_id");
    out_.pair(0, 0);
    out_.item("category", of_block ? profiler_category(entry.tag) : "unknown");
    if (of_block) {
      out_.text("frames");
      frames(entry.site);
    } else {
      no_frames();
    }
    out_.end_dictionary();
  }

  void write_settings(const SnapshotOptions& options) {
    out_.begin_dictionary();
    out_.item("PYTORCH_CUDA_ALLOC_CONF", "");
    out_.item("max_split_size", -1);
    out_.text("garbage_collection_threshold");
    out_.number(0);
    for (const char* no :
         {"release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "graph_capture_record_stream_reuse"}) {
      out_.text(no);
      out_.boolean(false);
    }
    out_.text("expandable_segments");
    out_.boolean(true);
    out_.item("pinned_num_register_threads", 1);
    out_.text("roundup_power2_divisions");
    out_.begin_dictionary();
    out_.end_dictionary();
    out_.item("trace_alloc_max_entries", static_cast<std::int64_t>(options.max_entries));
    out_.text("trace_alloc_overflowed");
    out_.boolean(state_.overflowed());
    out_.end_dictionary();
  }

  PickleWriter& out_;
  const RecordingReader& reader_;
  const SnapshotState& state_;
  std::map<SnapshotSite, PickleWriter::Memo> sites_;
};

/// The state at the window's end; the whole recording is read, and so checked.
void read_window(RecordingReader& reader, SnapshotState& state, const SnapshotOptions& options) {
  bool is_open = true, has_begun = options.first_step == SnapshotOptions{}.first_step;
  while (reader.next()) {
    for (std::size_t i = 0; i < reader.events().size() && is_open; ++i) {
      const AllocatorEvent& event = reader.events()[i];
      const auto step = static_cast<std::int64_t>(event.allocation);
      if (event.kind == AllocatorEvent::Kind::step) {
        is_open = step <= options.last_step;
        if (is_open && !has_begun && step >= options.first_step) {
          state.begin_window();
          has_begun = true;
        }
      }
      if (is_open) state.apply(i);
    }
  }
  if (!has_begun) {
    throw bad_input("--steps", fmt::format("steps of the recording, which ends in step {}", state.step()),
                    fmt::format("{}..{}", options.first_step, options.last_step));
  }
  state.end_window();
}

}  // namespace

void write_snapshot(const std::string& recording, const std::string& path, const SnapshotOptions& options) {
  RecordingReader reader(recording);
  SnapshotState state(reader, options.max_entries);
  read_window(reader, state, options);
  OutputFile file(path);
  PickleWriter out(file);
  Writer(out, reader, state).write(options);
  file.close();
}

}  // namespace headroom::bench
