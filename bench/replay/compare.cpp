#include "replay/own_replay.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <tuple>

namespace headroom::bench {
namespace {

std::string text_of(const AllocatorEvent& event, const std::string& name) {
  constexpr std::array kKinds{"segment_map", "segment_unmap", "alloc",   "free_requested", "free_completed",
                              "view",        "view_drop",     "retag",   "out_of_memory",  "step",
                              "unit",        "use",           "wait",    "trim",           "slots",
                              "peak_reset",  "host_wait",     "callback"};
  const auto kind = static_cast<std::size_t>(event.kind);
  return fmt::format("{} of '{}' at {:#x}, {} bytes ({} asked), allocation {}, ticket {} of stream {}, {}, flags {}",
                     kind < kKinds.size() ? kKinds[kind] : "?", name, event.address, event.bytes, event.requested_bytes,
                     event.allocation, event.ticket, event.stream, name_of(event.tag), event.flags);
}

std::string name_at(const auto& names, std::uint32_t id) { return id < names.size() ? names[id] : std::string(); }

}  // namespace

void OwnReplay::expect(std::span<const AllocatorEvent> recorded) {
  if (compares_ && !difference_) expected_.insert(expected_.end(), recorded.begin(), recorded.end());
}

bool OwnReplay::is_same(const AllocatorEvent& expected, const AllocatorEvent& found) const {
  const auto key = [](const AllocatorEvent& e) {
    return std::make_tuple(e.number, e.allocation, e.address, e.bytes, e.requested_bytes, e.ticket, e.unit, e.stream,
                           e.kind, e.tag, e.region, e.flags);
  };
  return key(expected) == key(found) && name_at(names_, expected.name) == name_at(found_names_, found.name);
}

void OwnReplay::compare() {
  const std::vector<AllocatorEvent> found = memory_->events(compared_);
  found_names_ = memory_->names();
  for (const AllocatorEvent& event : found) {
    if (expected_.empty()) return;  // what the next events cause may be logged before they are read
    if (!is_same(expected_.front(), event)) {
      const AllocatorEvent& recorded = expected_.front();
      difference_ = {event.number, text_of(recorded, name_at(names_, recorded.name)),
                     text_of(event, name_at(found_names_, event.name))};
      return;
    }
    expected_.pop_front();
    ++compared_;
  }
}

std::optional<Difference> OwnReplay::finish_comparison(const NamedStatistics& recorded) const {
  const std::vector<AllocatorEvent> more = memory_->events(compared_);
  if (!expected_.empty() || !more.empty()) {
    const auto text = [](bool none, const auto& names, const AllocatorEvent& event) {
      return none ? "the end" : text_of(event, name_at(names, event.name));
    };
    return Difference{compared_,
                      text(expected_.empty(), names_, expected_.empty() ? AllocatorEvent{} : expected_.front()),
                      text(more.empty(), memory_->names(), more.empty() ? AllocatorEvent{} : more.front())};
  }
  const NamedStatistics found = named_statistics(memory_->statistics());
  for (const auto& [name, value] : recorded) {
    const auto same_name = [&key = name](const auto& statistic) { return statistic.first == key; };
    const auto mine = std::ranges::find_if(found, same_name);
    const std::string text = mine == found.end() ? "none" : std::to_string(mine->second);
    if (text != std::to_string(value)) return Difference{0, name + " " + std::to_string(value), name + " " + text};
  }
  return std::nullopt;
}

}  // namespace headroom::bench
