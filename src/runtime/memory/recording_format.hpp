#pragma once

#include <headroom/recording.hpp>

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace headroom::detail {

static_assert(std::endian::native == std::endian::little, "recordings are little-endian, and written as they are");

inline constexpr std::string_view kRecordingMagic = "HRMEVENT";
inline constexpr std::uint32_t kRecordingVersion = 2;
inline constexpr std::uint32_t kMaxPayloadBytes = 1U << 24;  ///< What a reader must be able to hold.

enum class ChunkKind : std::uint32_t {
  info = 1,         ///< InfoRecord; first.
  units,            ///< Strings.
  notes,            ///< Pairs of strings.
  names,            ///< Strings: more of what AllocatorEvent::name counts into.
  operation_names,  ///< Strings: more of what RecordedOperation::name counts into.
  streams,          ///< StreamRecord and a string, each.
  events,           ///< AllocatorEvent.
  operations,       ///< RecordedOperation.
  host_spans,       ///< SpanRecord.
  lost,             ///< LostRecord: where they would have been.
  statistics,       ///< A string and a u64, each.
  end,              ///< EndRecord; last.
};

struct FileHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = kRecordingVersion;
  std::uint32_t event_bytes = sizeof(AllocatorEvent);
};
static_assert(sizeof(FileHeader) == 16);

struct ChunkHeader {
  std::uint32_t kind = 0, count = 0, payload_bytes = 0;
  std::uint32_t crc32c = 0;  ///< Of the three numbers before it, then of the payload.
};
static_assert(sizeof(ChunkHeader) == 16);

inline constexpr StreamId kMostStreams = 1U << 16;  // readers keep something for each

/// Events of this kind carry a name.
[[nodiscard]] inline bool has_name(AllocatorEvent::Kind kind) noexcept {
  using Kind = AllocatorEvent::Kind;
  switch (kind) {
    case Kind::segment_map:
    case Kind::segment_unmap:
    case Kind::wait:
    case Kind::trim:
    case Kind::slots:
    case Kind::peak_reset:
    case Kind::host_wait:
    case Kind::callback: return false;
    default: return true;
  }
}

struct InfoRecord {
  std::uint32_t rank = 0, world = 1;
  std::int64_t steady_ns = 0, epoch_ns = 0;
  std::uint64_t page_bytes = 0, limit_bytes = 0, region_bytes = 0;
  std::array<std::uint64_t, kRegionCount> region_base{};
  std::uint64_t slot_base = 0;
};
static_assert(sizeof(InfoRecord) == 80);

struct StreamRecord {
  std::uint32_t id = 0, role = 0;
};

struct SpanRecord {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t cause = 0;
};
static_assert(sizeof(SpanRecord) == 24);

struct LostRecord {
  std::uint64_t first_event = 0, events = 0, trace_records = 0;
};

struct EndRecord {
  std::uint64_t events = 0, operations = 0, host_spans = 0, chunks = 0;  ///< Present; chunks: before this one.
};
static_assert(sizeof(EndRecord) == 32);

template <class T>
[[nodiscard]] std::string_view bytes_of(const T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

[[nodiscard]] std::uint32_t chunk_checksum(const ChunkHeader& header, std::string_view payload) noexcept;

}  // namespace headroom::detail
