#include "runtime/memory/recording_file.hpp"

#include <headroom/error.hpp>
#include <headroom/timeline.hpp>

#include "runtime/core/stream_order.hpp"

#include <algorithm>

namespace headroom {
namespace {

using detail::ChunkHeader;
using detail::ChunkKind;
using detail::kMostStreams;
using detail::PayloadCursor;
using detail::StreamOrder;

constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 48;  // in a hole: sums cannot overflow

std::string numbered(const char* what, std::uint64_t number) {
  return std::string(what).append(" ").append(std::to_string(number));
}

RecordingInfo decoded(const detail::InfoRecord& record) {
  RecordingInfo info;
  info.rank = record.rank;
  info.world = record.world;
  info.steady_ns = record.steady_ns;
  info.epoch_ns = record.epoch_ns;
  info.layout.page_bytes = record.page_bytes;
  info.layout.limit_bytes = record.limit_bytes;
  info.layout.region_bytes = record.region_bytes;
  info.layout.region_base = record.region_base;
  info.layout.slot_base = record.slot_base;
  return info;
}

/// What no event tells: how the allocator came by its blocks.
constexpr std::array<std::string_view, 3> kNotFolded{"largest_free_block", "num_alloc_retries", "waited_reuse"};

}  // namespace

struct RecordingReader::State {
  State(const std::string& path, Holes holes_);

  /// False at the end. Records of one kind may be there afterwards.
  bool read_chunk();
  void decode(const ChunkHeader& header, PayloadCursor& cursor);
  void decode_info(PayloadCursor& cursor);
  void decode_streams(PayloadCursor& cursor);
  void decode_events(PayloadCursor& cursor);
  void decode_operations(PayloadCursor& cursor);
  void decode_host_spans(PayloadCursor& cursor);
  void decode_lost(PayloadCursor& cursor);
  void decode_statistics(PayloadCursor& cursor);
  void check_event(const AllocatorEvent& event, std::size_t index);
  void check_end(PayloadCursor& cursor);
  void check_statistics() const;

  [[nodiscard]] bool has_records() const noexcept {
    return !events.empty() || !operations.empty() || !host_spans.empty();
  }
  [[nodiscard]] bool knows_unit(std::int32_t unit) const noexcept {
    return unit >= -1 && (info.units.empty() || unit < static_cast<std::int64_t>(info.units.size()));
  }
  [[noreturn]] void refuse_record(std::size_t index, std::size_t record_bytes, const std::string& expected,
                                  const std::string& found) const {
    file.refuse(expected, found, file.payload_offset() + index * record_bytes);
  }

  detail::ChunkFile file;
  Holes holes;
  bool is_first = true, at_end = false, pending = false;
  RecordingInfo info;
  std::vector<std::string> names, operation_names;
  std::vector<StreamInfo> streams;
  std::map<std::string, std::string> notes;
  NamedStatistics statistics;
  std::uint64_t next_event = 0, lost_events = 0, lost_trace_records = 0;
  detail::EndRecord totals;
  Timeline timeline;
  std::vector<AllocatorEvent> events;
  std::vector<RecordedOperation> operations;
  std::vector<HostSpan> host_spans;
};

RecordingReader::State::State(const std::string& path, Holes holes_) : file(path), holes(holes_) {
  while (!has_records() && read_chunk()) {
  }
  pending = has_records();
}

bool RecordingReader::State::read_chunk() {
  events.clear();
  operations.clear();
  host_spans.clear();
  if (at_end) return false;
  const ChunkHeader header = file.next();
  PayloadCursor cursor(file, header);
  if (is_first != (static_cast<ChunkKind>(header.kind) == ChunkKind::info))
    cursor.refuse(is_first ? "the chunk that says whose run this is" : "it once",
                  numbered("a chunk of kind", header.kind));
  is_first = false;
  if (!statistics.empty() && static_cast<ChunkKind>(header.kind) != ChunkKind::end)
    cursor.refuse("the end after the statistics", numbered("a chunk of kind", header.kind));
  decode(header, cursor);
  cursor.expect_whole();
  ++totals.chunks;
  return !at_end;
}

void RecordingReader::State::decode(const ChunkHeader& header, PayloadCursor& cursor) {
  const auto append_texts = [&](std::vector<std::string>& table) {
    for (std::uint32_t i = 0; i < cursor.count(); ++i) table.push_back(cursor.text());
  };
  switch (static_cast<ChunkKind>(header.kind)) {
    case ChunkKind::info: return decode_info(cursor);
    case ChunkKind::units: return append_texts(info.units);
    case ChunkKind::names: return append_texts(names);
    case ChunkKind::operation_names: return append_texts(operation_names);
    case ChunkKind::streams: return decode_streams(cursor);
    case ChunkKind::events: return decode_events(cursor);
    case ChunkKind::operations: return decode_operations(cursor);
    case ChunkKind::host_spans: return decode_host_spans(cursor);
    case ChunkKind::lost: return decode_lost(cursor);
    case ChunkKind::statistics: return decode_statistics(cursor);
    case ChunkKind::end: return check_end(cursor);
    case ChunkKind::notes:
      for (std::uint32_t i = 0; i < cursor.count(); ++i) {
        std::string key = cursor.text();
        if (!notes.emplace(key, cursor.text()).second) cursor.refuse("a note once", "another \"" + key + '"');
      }
      return;
  }
  cursor.refuse("a chunk of a known kind", numbered("kind", header.kind));
}

void RecordingReader::State::decode_info(PayloadCursor& cursor) {
  const std::vector<detail::InfoRecord> records = cursor.records<detail::InfoRecord>();
  if (records.size() != 1 || records[0].rank >= records[0].world) cursor.refuse("one rank of a world", "another");
  info = decoded(records[0]);
  const AllocatorLayout& layout = info.layout;
  if (layout.page_bytes == 0 || layout.region_bytes == 0 || layout.limit_bytes == 0) {
    cursor.refuse("pages, regions and a limit of some bytes", "none");
  }
}

void RecordingReader::State::decode_streams(PayloadCursor& cursor) {
  for (std::uint32_t i = 0; i < cursor.count(); ++i) {
    const auto record = cursor.number<detail::StreamRecord>();
    if (record.role > static_cast<std::uint32_t>(StreamRole::transfer)) {
      cursor.refuse("a known stream role", numbered("role", record.role));
    }
    streams.push_back({record.id, static_cast<StreamRole>(record.role), cursor.text()});
  }
}

void RecordingReader::State::check_event(const AllocatorEvent& event, std::size_t index) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    refuse_record(index, sizeof event, expected, found);
  };
  if (event.number != next_event) refuse(numbered("event", next_event), numbered("event", event.number));
  if (event.kind > AllocatorEvent::Kind::callback)
    refuse("a known kind", numbered("kind", static_cast<unsigned>(event.kind)));
  if (static_cast<int>(event.tag) >= kTagCount)
    refuse("a known tag", numbered("tag", static_cast<unsigned>(event.tag)));
  if (static_cast<int>(event.region) >= kRegionCount)
    refuse("a known region", numbered("region", static_cast<unsigned>(event.region)));
  if (event.kind == AllocatorEvent::Kind::alloc && static_cast<int>(event.rung()) >= kRungCount)
    refuse("a known rung", numbered("rung", static_cast<unsigned>(event.rung())));
  if (event.stream >= kMostStreams && event.stream != StreamOrder::kHost)
    refuse("one of " + std::to_string(kMostStreams) + " streams", numbered("stream", event.stream));
  if (event.kind == AllocatorEvent::Kind::wait && event.address >= kMostStreams)
    refuse("one of " + std::to_string(kMostStreams) + " streams", "stream " + std::to_string(event.address));
  if (event.name >= names.size() && (event.name != 0 || detail::has_name(event.kind)))
    refuse("one of " + std::to_string(names.size()) + " names", numbered("name", event.name));
  if (!knows_unit(event.unit))
    refuse("one of " + std::to_string(info.units.size()) + " units", "unit " + std::to_string(event.unit));
  ++next_event;
  if (lost_events > 0) return;
  try {
    timeline.apply(event);
  } catch (const InvalidInput& error) {
    refuse("an event that can follow", error.what());
  }
}

void RecordingReader::State::decode_events(PayloadCursor& cursor) {
  events = cursor.records<AllocatorEvent>();
  for (std::size_t i = 0; i < events.size(); ++i) check_event(events[i], i);
  totals.events += events.size();
}

void RecordingReader::State::decode_operations(PayloadCursor& cursor) {
  operations = cursor.records<RecordedOperation>();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const RecordedOperation& operation = operations[i];
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      refuse_record(i, sizeof operation, expected, found);
    };
    if (operation.kind > OperationRecord::Kind::skipped)
      refuse("a known kind", numbered("kind", static_cast<unsigned>(operation.kind)));
    if (operation.name >= operation_names.size())
      refuse("one of " + std::to_string(operation_names.size()) + " operation names", numbered("name", operation.name));
    if (!knows_unit(operation.unit))
      refuse("one of " + std::to_string(info.units.size()) + " units", "unit " + std::to_string(operation.unit));
    if (operation.end_ns < operation.start_ns) refuse("an operation that ends after it starts", "one that does not");
  }
  totals.operations += operations.size();
}

void RecordingReader::State::decode_host_spans(PayloadCursor& cursor) {
  for (const detail::SpanRecord& record : cursor.records<detail::SpanRecord>()) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      refuse_record(host_spans.size(), sizeof record, expected, found);
    };
    if (record.cause > static_cast<std::uint64_t>(HostCause::vote))
      refuse("a known cause", numbered("cause", record.cause));
    if (record.end_ns < record.start_ns) refuse("a span that ends after it starts", "one that does not");
    host_spans.push_back({static_cast<HostCause>(record.cause), record.start_ns, record.end_ns});
  }
  totals.host_spans += host_spans.size();
}

void RecordingReader::State::decode_lost(PayloadCursor& cursor) {
  for (const detail::LostRecord& record : cursor.records<detail::LostRecord>()) {
    lost_trace_records += record.trace_records;
    if (record.events == 0) continue;
    if (record.first_event != next_event || record.events > kMostEvents)
      cursor.refuse(numbered("a hole that begins at event", next_event), numbered("event", record.first_event));
    if (holes == Holes::refused) {
      cursor.refuse("every event", "a hole: the log dropped events " + std::to_string(next_event) + " to " +
                                       std::to_string(next_event + record.events - 1));
    }
    next_event += record.events;
    lost_events += record.events;
  }
}

void RecordingReader::State::decode_statistics(PayloadCursor& cursor) {
  for (std::uint32_t i = 0; i < cursor.count(); ++i) {
    std::string name = cursor.text();
    statistics.emplace_back(std::move(name), cursor.number<std::uint64_t>());
  }
  if (lost_events == 0) check_statistics();
}

void RecordingReader::State::check_statistics() const {
  const std::map<std::string, std::uint64_t> given(statistics.begin(), statistics.end());
  for (const auto& [name, value] : named_statistics(timeline.now().statistics)) {
    if (std::ranges::find(kNotFolded, name) != kNotFolded.end()) continue;
    const auto found = given.find(name);
    if (found == given.end() || found->second == value) continue;
    file.refuse(name + " = " + std::to_string(value) + ", to which the events come", std::to_string(found->second),
                file.payload_offset());
  }
}

void RecordingReader::State::check_end(PayloadCursor& cursor) {
  const std::vector<detail::EndRecord> records = cursor.records<detail::EndRecord>();
  if (records.size() != 1 || detail::bytes_of(records[0]) != detail::bytes_of(totals)) {
    cursor.refuse(std::to_string(totals.events) + " events, " + std::to_string(totals.operations) + " operations, " +
                      std::to_string(totals.host_spans) + " spans and " + std::to_string(totals.chunks) + " chunks",
                  "other totals");
  }
  file.expect_end();
  at_end = true;
}

RecordingReader::RecordingReader(const std::string& path, Holes holes) : state_(std::make_unique<State>(path, holes)) {}
RecordingReader::~RecordingReader() = default;

bool RecordingReader::next() {
  if (std::exchange(state_->pending, false)) return true;
  while (state_->read_chunk()) {
    if (state_->has_records()) return true;
  }
  return false;
}

std::span<const AllocatorEvent> RecordingReader::events() const noexcept { return state_->events; }
std::span<const RecordedOperation> RecordingReader::operations() const noexcept { return state_->operations; }
std::span<const HostSpan> RecordingReader::host_spans() const noexcept { return state_->host_spans; }
const RecordingInfo& RecordingReader::info() const noexcept { return state_->info; }
const std::vector<std::string>& RecordingReader::names() const noexcept { return state_->names; }
const std::vector<std::string>& RecordingReader::operation_names() const noexcept { return state_->operation_names; }
const std::vector<StreamInfo>& RecordingReader::streams() const noexcept { return state_->streams; }
const std::map<std::string, std::string>& RecordingReader::notes() const noexcept { return state_->notes; }
const NamedStatistics& RecordingReader::statistics() const noexcept { return state_->statistics; }
std::uint64_t RecordingReader::lost_events() const noexcept { return state_->lost_events; }
std::uint64_t RecordingReader::lost_trace_records() const noexcept { return state_->lost_trace_records; }

void RecordingReader::refuse(std::size_t index, const std::string& expected, const std::string& found) const {
  state_->refuse_record(index, sizeof(AllocatorEvent), expected, found);
}

}  // namespace headroom
