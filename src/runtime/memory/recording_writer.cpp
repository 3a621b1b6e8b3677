#include "runtime/memory/recording_format.hpp"

#include "runtime/core/check.hpp"

#include <headroom/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unordered_map>

namespace headroom {
namespace {

using detail::ChunkKind;

constexpr std::size_t kChunkBytes = std::size_t{1} << 19;  // aimed at

}  // namespace

struct RecordingWriter::State {
  State(const std::string& path_, const RecordingInfo& info);
  ~State() { close(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void write(std::string_view bytes);
  /// One chunk of `count` records, which are `payload`.
  void chunk(ChunkKind kind, std::size_t count, std::string_view payload);
  /// Chunks of all of `records`; `encode` appends one.
  template <class Records, class Encode>
  void chunks(ChunkKind kind, const Records& records, const Encode& encode);
  void strings(ChunkKind kind, std::span<const std::string> texts);

  void lost(std::uint64_t first_event, std::uint64_t lost_events, std::uint64_t trace_records);
  void write_events(const CachingAllocator& memory);
  void write_trace(Trace& trace);
  RecordedOperation recorded(const OperationRecord& record);
  int close() noexcept;

  std::string path;
  std::FILE* file = nullptr;
  std::uint64_t next_event = 0;
  std::size_t names_written = 0, operation_names_written = 0, streams_written = 0;
  std::vector<std::string> operation_names;
  std::unordered_map<std::string, std::uint32_t> operation_name_index;
  detail::EndRecord totals;
};

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& action, int error_number) {
  throw InputOutputError(path + ": expected to " + action + ", found: " + std::strerror(error_number) + ".");
}

void put(std::string& out, std::string_view text) {
  if (text.size() > detail::kMaxPayloadBytes / 2) {
    throw InvalidInput("recording: expected texts of at most " + std::to_string(detail::kMaxPayloadBytes / 2) +
                       " bytes, found one of " + std::to_string(text.size()));
  }
  out += detail::bytes_of(static_cast<std::uint32_t>(text.size()));
  out += text;
}

detail::InfoRecord encoded(const RecordingInfo& info) {
  detail::InfoRecord record;
  record.rank = info.rank;
  record.world = info.world;
  record.steady_ns = info.steady_ns;
  record.epoch_ns = info.epoch_ns;
  record.page_bytes = info.layout.page_bytes;
  record.limit_bytes = info.layout.limit_bytes;
  record.region_bytes = info.layout.region_bytes;
  record.region_base = info.layout.region_base;
  record.slot_base = info.layout.slot_base;
  return record;
}

}  // namespace

RecordingWriter::State::State(const std::string& path_, const RecordingInfo& info)
    : path(path_), file(std::fopen(path.c_str(), "wbe")) {
  if (file == nullptr) fail(path, "create the file", errno);
  detail::FileHeader header;
  std::ranges::copy(detail::kRecordingMagic, header.magic.begin());
  write(detail::bytes_of(header));
  chunk(ChunkKind::info, 1, detail::bytes_of(encoded(info)));
  strings(ChunkKind::units, info.units);
}

int RecordingWriter::State::close() noexcept {
  std::FILE* open = std::exchange(file, nullptr);
  return open != nullptr && std::fclose(open) != 0 ? errno : 0;
}

void RecordingWriter::State::write(std::string_view bytes) {
  HEADROOM_EXPECT(file != nullptr, "the recording " + path + " is finished");
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
    fail(path, "write " + std::to_string(bytes.size()) + " bytes", errno);
}

void RecordingWriter::State::chunk(ChunkKind kind, std::size_t count, std::string_view payload) {
  detail::ChunkHeader header;
  header.kind = static_cast<std::uint32_t>(kind);
  header.count = static_cast<std::uint32_t>(count);
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.crc32c = detail::chunk_checksum(header, payload);
  write(detail::bytes_of(header));
  write(payload);
  ++totals.chunks;
}

template <class Records, class Encode>
void RecordingWriter::State::chunks(ChunkKind kind, const Records& records, const Encode& encode) {
  std::string payload;
  std::size_t count = 0;
  for (const auto& record : records) {
    encode(payload, record);
    ++count;
    if (payload.size() < kChunkBytes) continue;
    chunk(kind, count, payload);
    payload.clear();
    count = 0;
  }
  if (count > 0) chunk(kind, count, payload);
}

void RecordingWriter::State::strings(ChunkKind kind, std::span<const std::string> texts) {
  chunks(kind, texts, [](std::string& out, const std::string& text) { put(out, text); });
}

void RecordingWriter::State::lost(std::uint64_t first_event, std::uint64_t lost_events, std::uint64_t trace_records) {
  chunk(ChunkKind::lost, 1, detail::bytes_of(detail::LostRecord{first_event, lost_events, trace_records}));
}

void RecordingWriter::State::write_events(const CachingAllocator& memory) {
  const std::vector<AllocatorEvent> events = memory.events(next_event);
  const std::uint64_t first = events.empty() ? std::max(next_event, memory.dropped_events()) : events.front().number;
  if (first > next_event) lost(next_event, first - next_event, 0);
  next_event = first + events.size();
  if (events.empty()) return;
  const std::vector<std::string> names = memory.names();  // at least those of the events above
  strings(ChunkKind::names, std::span(names).subspan(names_written));
  names_written = names.size();
  chunks(ChunkKind::events, events,
         [](std::string& out, const AllocatorEvent& event) { out += detail::bytes_of(event); });
  totals.events += events.size();
}

RecordedOperation RecordingWriter::State::recorded(const OperationRecord& record) {
  const auto next = static_cast<std::uint32_t>(operation_names.size());
  const auto [place, is_new] = operation_name_index.emplace(record.name, next);
  if (is_new) operation_names.emplace_back(record.name);
  RecordedOperation operation;
  operation.issued_ns = record.issued_ns;
  operation.start_ns = record.start_ns;
  operation.end_ns = record.end_ns;
  operation.ticket = record.ticket;
  operation.producer_ticket = record.producer_ticket;
  operation.stream = record.stream;
  operation.producer = record.producer;
  operation.name = place->second;
  operation.unit = record.unit;
  operation.kind = record.kind;
  return operation;
}

void RecordingWriter::State::write_trace(Trace& trace) {
  const TraceRecords records = trace.take();
  const std::vector<StreamInfo> streams = trace.streams();
  chunks(ChunkKind::streams, std::span(streams).subspan(streams_written),
         [](std::string& out, const StreamInfo& stream) {
           out += detail::bytes_of(detail::StreamRecord{stream.id, static_cast<std::uint32_t>(stream.role)});
           put(out, stream.name);
         });
  streams_written = streams.size();
  if (records.dropped > 0) lost(next_event, 0, records.dropped);

  std::vector<RecordedOperation> operations;
  operations.reserve(records.operations.size());
  for (const OperationRecord& record : records.operations) operations.push_back(recorded(record));
  strings(ChunkKind::operation_names, std::span(operation_names).subspan(operation_names_written));
  operation_names_written = operation_names.size();
  chunks(ChunkKind::operations, operations,
         [](std::string& out, const RecordedOperation& operation) { out += detail::bytes_of(operation); });
  chunks(ChunkKind::host_spans, records.host_spans, [](std::string& out, const HostSpan& span) {
    out += detail::bytes_of(detail::SpanRecord{span.start_ns, span.end_ns, static_cast<std::uint64_t>(span.cause)});
  });
  totals.operations += operations.size();
  totals.host_spans += records.host_spans.size();
}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingInfo& info)
    : state_(std::make_unique<State>(path, info)) {}

RecordingWriter::~RecordingWriter() = default;

void RecordingWriter::note(const std::string& key, const std::string& text) {
  std::string payload;
  put(payload, key);
  put(payload, text);
  state_->chunk(ChunkKind::notes, 1, payload);
}

void RecordingWriter::drain(const CachingAllocator& memory) { state_->write_events(memory); }

void RecordingWriter::drain(const CachingAllocator& memory, Trace& trace) {
  state_->write_events(memory);
  state_->write_trace(trace);
}

void RecordingWriter::finish(const CachingAllocator& memory, Trace& trace) {
  drain(memory, trace);
  state_->chunks(ChunkKind::statistics, named_statistics(memory.statistics()),
                 [](std::string& out, const NamedStatistics::value_type& pair) {
                   put(out, pair.first);
                   out += detail::bytes_of(pair.second);
                 });
  state_->chunk(ChunkKind::end, 1, detail::bytes_of(detail::EndRecord(state_->totals)));
  if (const int error_number = state_->close(); error_number != 0)
    fail(state_->path, "reach the file's end", error_number);
}

std::uint64_t RecordingWriter::events() const noexcept { return state_->next_event; }

}  // namespace headroom
