#include "run/recorder.hpp"

#include "options/json_text.hpp"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace headroom::bench {

void Recorder::open(const std::string& path, const Config& config, const Communicator& world,
                    std::vector<std::string> units) {
  if (path.empty()) return;
  RecordingInfo info = recording_info(memory_);
  info.rank = static_cast<std::uint32_t>(world.rank());
  info.world = static_cast<std::uint32_t>(world.size());
  info.units = std::move(units);
  writer_ = std::make_unique<RecordingWriter>(path, info);
  writer_->note("config", dump(to_json(config)));
}

void Recorder::note(const std::string& key, const std::string& text) const {
  if (writer_) writer_->note(key, text);
}

void Recorder::note_external(const MemoryUse& use) const {
  nlohmann::ordered_json external = nlohmann::ordered_json::object();
  for (const auto& [name, figure] : use.external) external[name] = {{"bytes", figure.bytes}, {"source", figure.source}};
  if (use.used_bytes > 0) external["unattributed"] = {{"bytes", use.unattributed_bytes}, {"source", "what is left"}};
  note("external", dump(external));
}

void Recorder::note_schedules(const ParameterManager& parameters) {
  if (!writer_) return;
  for (const PathStatus& path : parameters.paths()) {
    const bool is_known = path.prefetch_off.empty();
    if (is_known && noted_.insert(path.name).second)
      writer_->note("schedule " + path.name, parameters.schedule(path.name).text());
  }
}

void Recorder::relieve_log() {
  constexpr std::uint64_t kWaiting = AllocatorOptions{}.event_capacity / 2;
  if (writer_ && !memory_.events(writer_->events() + kWaiting).empty()) writer_->drain(memory_);
}

void Recorder::drain() {
  if (writer_) writer_->drain(memory_, memory_.device().trace());
}

void Recorder::finish() {
  if (const std::unique_ptr<RecordingWriter> writer = std::exchange(writer_, nullptr))
    writer->finish(memory_, memory_.device().trace());
}

void Recorder::close() noexcept {
  try {
    finish();
  } catch (const std::exception& error) {
    spdlog::warn("the recording of a run that failed is incomplete: {}", error.what());
  }
}

}  // namespace headroom::bench
