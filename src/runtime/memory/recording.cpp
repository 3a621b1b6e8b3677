#include "runtime/memory/recording_format.hpp"

#include <headroom/crc32c.hpp>

#include <chrono>
#include <iterator>

namespace headroom {
namespace {

constexpr std::array<const char*, kRegionCount> kRegionNames{"residents", "communication", "transients"};
constexpr std::array<const char*, kRungCount> kRungNames{"ready",    "grown",    "waited",
                                                         "callback", "returned", "host_waited"};

template <class Clock>
std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

void add(NamedStatistics& list, const std::string& name, const Metric& metric) {
  list.emplace_back(name + ".all.current", metric.current);
  list.emplace_back(name + ".all.peak", metric.peak);
  list.emplace_back(name + ".all.allocated", metric.allocated);
  list.emplace_back(name + ".all.freed", metric.freed);
}

template <class Record>
void append(std::vector<Record>& all, std::span<const Record> more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

namespace detail {

std::uint32_t chunk_checksum(const ChunkHeader& header, std::string_view payload) noexcept {
  constexpr std::size_t kChecked = sizeof(ChunkHeader) - sizeof header.crc32c;
  const std::string_view fields = bytes_of(header).substr(0, kChecked);
  return crc32c(std::as_bytes(std::span(payload)), crc32c(std::as_bytes(std::span(fields))));
}

}  // namespace detail

RecordingInfo recording_info(const CachingAllocator& memory) {
  RecordingInfo info;
  info.layout = memory.layout();
  const std::int64_t device_ns = memory.device().now_ns();
  info.steady_ns = now_ns<std::chrono::steady_clock>() - device_ns;
  info.epoch_ns = now_ns<std::chrono::system_clock>() - device_ns;
  return info;
}

NamedStatistics named_statistics(const MemoryStatistics& memory) {
  NamedStatistics list;
  add(list, "allocation", memory.allocation);
  add(list, "allocated_bytes", memory.allocated_bytes);
  add(list, "requested_bytes", memory.requested_bytes);
  add(list, "active", memory.active);
  add(list, "active_bytes", memory.active_bytes);
  add(list, "reserved_bytes", memory.reserved_bytes);
  add(list, "pending_free_bytes", memory.pending_free_bytes);
  for (std::size_t region = 0; region < kRegionNames.size(); ++region) {
    const std::string prefix = std::string(kRegionNames[region]) + ".";
    add(list, prefix + "allocated_bytes", memory.regions[region].allocated_bytes);
    add(list, prefix + "reserved_bytes", memory.regions[region].reserved_bytes);
  }
  for (int tag = 0; tag < kTagCount; ++tag) {
    list.emplace_back(std::string("tag_bytes.") + name_of(static_cast<Tag>(tag)),
                      memory.tag_bytes[static_cast<std::size_t>(tag)]);
  }
  for (std::size_t rung = 0; rung < kRungNames.size(); ++rung) {
    list.emplace_back(std::string("rungs.") + kRungNames[rung], memory.rungs[rung]);
  }
  list.emplace_back("cached_bytes", memory.cached_bytes);
  list.emplace_back("largest_free_block", memory.largest_free_block);
  list.emplace_back("num_alloc_retries", memory.num_alloc_retries);
  list.emplace_back("num_ooms", memory.num_ooms);
  list.emplace_back("num_device_alloc", memory.num_device_alloc);
  list.emplace_back("num_device_free", memory.num_device_free);
  list.emplace_back("waited_reuse", memory.waited_reuse);
  list.emplace_back("host_waits", memory.host_waits);
  return list;
}

Recording read_recording(const std::string& path, Holes holes) {
  RecordingReader reader(path, holes);
  Recording all;
  while (reader.next()) {
    append(all.events, reader.events());
    append(all.operations, reader.operations());
    append(all.host_spans, reader.host_spans());
  }
  all.info = reader.info();
  all.names = reader.names();
  all.operation_names = reader.operation_names();
  all.streams = reader.streams();
  all.notes = reader.notes();
  all.statistics = reader.statistics();
  all.lost_events = reader.lost_events();
  all.lost_trace_records = reader.lost_trace_records();
  return all;
}

}  // namespace headroom
