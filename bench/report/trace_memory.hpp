#pragma once

#include "report/trace_writer.hpp"

#include <headroom/recording.hpp>
#include <headroom/timeline.hpp>

#include <bitset>
#include <map>
#include <optional>

namespace headroom::bench {

/// What a first reading of a recording says about its second.
struct TraceExtent {
  std::size_t operations = 0, lifetimes = 0;
  std::int64_t first_ns = 0, last_ns = 0;  ///< Of events.
  std::bitset<kTagCount> tags;
};

inline constexpr std::size_t kShownBytes = std::size_t{1} << 20;  ///< Of a buffer whose life is shown.

/// The memory of one rank as counters and lives, written as its events come by.
class TraceMemory {
 public:
  /// `bucket_ns`: at most one sample within each, the highest, and the last value where nothing follows.
  TraceMemory(TraceWriter& out, const RecordingReader& reader, const TraceExtent& extent, std::int64_t bucket_ns,
              std::size_t lifetimes_left_out)
      : out_(out), reader_(reader), extent_(extent), bucket_ns_(bucket_ns), left_out_(lifetimes_left_out) {}

  void apply(const AllocatorEvent& event);
  void finish();

 private:
  struct Sample {
    std::int64_t time_ns = 0;
    TagBytes tag_bytes{};
    std::size_t allocated_bytes = 0, pending_bytes = 0, cached_bytes = 0;
  };
  struct Life {
    std::string name;
    StreamId stream = 0;
    std::uint64_t id = 0;
  };
  void sample(bool is_step);
  void write(const Sample& sample);
  /// Writes what the bucket has to show; the next sample is in `next_bucket`.
  void flush(std::int64_t next_bucket);
  void begin_life(const AllocatorEvent& event);
  void end_life(std::uint64_t allocation);
  [[nodiscard]] int process() const { return static_cast<int>(reader_.info().rank); }

  TraceWriter& out_;
  const RecordingReader& reader_;
  const TraceExtent& extent_;
  std::int64_t bucket_ns_;
  std::size_t left_out_;
  Timeline timeline_;
  std::int64_t now_ns_ = 0, bucket_ = -1;
  std::optional<Sample> highest_;  ///< Of the bucket, not written yet.
  Sample last_;
  std::map<std::uint64_t, Life> lives_;
};

}  // namespace headroom::bench
