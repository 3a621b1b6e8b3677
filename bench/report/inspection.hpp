#pragma once

#include <headroom/buffer_spans.hpp>
#include <headroom/recording.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headroom::bench {

/// Which instant of a recording: the peak; an event; or the highest one of a visit ("3/backward/h.2").
struct InstantChoice {
  enum class Kind : std::uint8_t { peak, event, visit };
  Kind kind = Kind::peak;
  std::uint64_t event = 0;
  std::int64_t step = 0;
  std::string operation, unit;  ///< As the visit was marked.
};

/// Throws: InvalidInput.
[[nodiscard]] InstantChoice parse_instant(const std::string& text);
[[nodiscard]] std::string to_text(const InstantChoice& choice);

enum class Clock : std::uint8_t { issue, device };

/// What is shown of a recording. Of the device clock `device` and its buffers; the rest is in issue order either way.
struct Inspection {
  std::string path;
  Clock clock = Clock::issue;
  RecordingInfo info;
  std::vector<std::string> names;
  std::uint64_t events = 0;
  std::int64_t first_step = -1, last_step = -1;  ///< -1: no step mark.
  MemoryInstant instant;
  std::vector<LiveBuffer> buffers;  ///< Live after that event; pending ones too.
  MemoryPeak peak;
  std::optional<SpanInstant> device;       ///< The instant on the device: see inspect().
  std::vector<BufferSpan> device_buffers;  ///< In what state each was then.
  std::vector<UnitLifetimes> units;        ///< Over the step of the instant, by `clock`.

  [[nodiscard]] std::string unit(int index) const;  ///< Empty: none.
  [[nodiscard]] std::string name(std::uint32_t index) const;
};

/// Reads the recording twice, a chunk at a time, and holds one step of it. On the device clock, the instant is: of an
/// event, the start of the first operation that was enqueued after it; of a visit, the highest while its operations
/// ran; of the peak, the highest of its step. Throws: InvalidInput where the file or the instant is not there; BadFile.
[[nodiscard]] Inspection inspect(const std::string& path, const InstantChoice& choice, Clock clock);

/// CONTRACT section 2.
[[nodiscard]] nlohmann::ordered_json to_json(const Inspection& inspection);
/// For a terminal; `units`: the table of units too.
[[nodiscard]] std::string to_text(const Inspection& inspection, bool units);

}  // namespace headroom::bench
