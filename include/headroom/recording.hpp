#pragma once

#include <headroom/allocator.hpp>
#include <headroom/trace.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

/// Whose run a recording is of, and what its addresses and times count from.
struct RecordingInfo {
  std::uint32_t rank = 0, world = 1;
  AllocatorLayout layout;
  std::int64_t steady_ns = 0;  ///< The host's steady clock at 0 of the device's: ranks of one host share that axis.
  std::int64_t epoch_ns = 0;   ///< The wall clock (since 1970, UTC) at 0 of the device's.
  std::vector<std::string> units;
};

/// The layout and clocks of this allocator's recording; rank, world and units are the caller's to add.
[[nodiscard]] RecordingInfo recording_info(const CachingAllocator& memory);

/// An OperationRecord as it is written. `name` counts into the recording's operation names.
struct RecordedOperation {
  std::int64_t issued_ns = 0, start_ns = 0, end_ns = 0;
  Ticket ticket = 0, producer_ticket = 0;
  StreamId stream = 0, producer = 0;
  std::uint32_t name = 0;
  std::int32_t unit = -1;
  OperationRecord::Kind kind = OperationRecord::Kind::work;
  std::array<std::uint8_t, 7> zero{};
};
static_assert(sizeof(RecordedOperation) == 64);

/// "allocated_bytes.all.peak", "num_ooms", ... and their values: what a fold of the events must come to.
using NamedStatistics = std::vector<std::pair<std::string, std::uint64_t>>;
[[nodiscard]] NamedStatistics named_statistics(const MemoryStatistics& memory);

/// Writes a run's recording as it goes on; CONTRACT section 5 has the format. Not thread-safe; blocks on the file only,
/// enqueues nothing. Throws: InputOutputError.
class RecordingWriter {
 public:
  /// Makes the file, or empties it.
  RecordingWriter(const std::string& path, const RecordingInfo& info);
  ~RecordingWriter();  ///< Without finish() the file lacks its end, and is refused by readers.
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  /// Free text under a name that was not given yet: "config", "schedule".
  void note(const std::string& key, const std::string& text);
  /// Appends the events since the last drain. Those that the log dropped meanwhile are recorded as a hole.
  void drain(const CachingAllocator& memory);
  /// The same, and takes all that the trace holds.
  void drain(const CachingAllocator& memory, Trace& trace);
  /// The last drain; then the statistics, and the end. While nothing else uses the allocator. Once.
  void finish(const CachingAllocator& memory, Trace& trace);
  [[nodiscard]] std::uint64_t events() const noexcept;  ///< Seen so far, dropped ones included.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Holes : std::uint8_t { refused, allowed };

/// Reads a recording a chunk at a time, in bounded memory but for names, and checks all of it: sums, counts, indices,
/// and that each event can follow those before it. Not thread-safe. Throws: InvalidInput where the file cannot be
/// opened; InputOutputError; BadFile "event file PATH: expected X, found Y at offset N".
class RecordingReader {
 public:
  explicit RecordingReader(const std::string& path, Holes holes = Holes::refused);
  ~RecordingReader();
  RecordingReader(const RecordingReader&) = delete;
  RecordingReader& operator=(const RecordingReader&) = delete;

  /// The next records: some of one kind, the other two empty. False: the end was reached, and all is well.
  [[nodiscard]] bool next();
  [[nodiscard]] std::span<const AllocatorEvent> events() const noexcept;
  [[nodiscard]] std::span<const RecordedOperation> operations() const noexcept;
  [[nodiscard]] std::span<const HostSpan> host_spans() const noexcept;

  [[nodiscard]] const RecordingInfo& info() const noexcept;
  /// Those so far: all that the records so far refer to; complete at the end, as are notes.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;  ///< Of events.
  [[nodiscard]] const std::vector<std::string>& operation_names() const noexcept;
  [[nodiscard]] const std::vector<StreamInfo>& streams() const noexcept;
  [[nodiscard]] const std::map<std::string, std::string>& notes() const noexcept;
  [[nodiscard]] const NamedStatistics& statistics() const noexcept;  ///< At the end.
  [[nodiscard]] std::uint64_t lost_events() const noexcept;          ///< So far; 0 where holes are refused.
  [[nodiscard]] std::uint64_t lost_trace_records() const noexcept;   ///< So far.
  /// Refuses event `index` of events(), for a reason of the caller's. Throws: BadFile.
  [[noreturn]] void refuse(std::size_t index, const std::string& expected, const std::string& found) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A whole recording in memory.
struct Recording {
  RecordingInfo info;
  std::vector<std::string> names, operation_names;
  std::vector<StreamInfo> streams;
  std::map<std::string, std::string> notes;
  std::vector<AllocatorEvent> events;
  std::vector<RecordedOperation> operations;
  std::vector<HostSpan> host_spans;
  NamedStatistics statistics;
  std::uint64_t lost_events = 0, lost_trace_records = 0;
};

/// Throws: as RecordingReader.
[[nodiscard]] Recording read_recording(const std::string& path, Holes holes = Holes::refused);

}  // namespace headroom
