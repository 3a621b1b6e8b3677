#pragma once

#include <headroom/events.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::bench {

/// One rank's allocator log on disk. Little-endian, no padding between the parts:
///   "HRMEVENT"                      8 bytes
///   version 1, record bytes 64      two u32
///   rank, world                     two u32
///   dropped, records                two u64: events lost before the first record; records that follow
///   names, units                    two u32: how many strings each of the two tables has
///   the tables                      each string: u32 length, then its bytes
///   records                         AllocatorEvent, as it is in memory
///   CRC-32C                         u32, of all bytes before it
struct EventFile {
  std::uint32_t rank = 0, world = 1;
  std::uint64_t dropped = 0;
  std::vector<std::string> names;  ///< What AllocatorEvent::name counts into.
  std::vector<std::string> units;
  std::vector<AllocatorEvent> events;
};

[[nodiscard]] std::string encode_events(const EventFile& file);
/// Throws: InvalidInput naming `source`, what is wrong and at which offset.
[[nodiscard]] EventFile decode_events(std::string_view bytes, const std::string& source);

}  // namespace headroom::bench
