#pragma once

#include <headroom/timeline.hpp>

#include "runtime/memory/metric.hpp"
#include "runtime/memory/peak.hpp"

#include <unordered_map>

namespace headroom {
namespace detail {

/// Everything behind Timeline. Each member that takes an event checks it before it changes anything.
struct TimelineState {
  struct Storage {
    LiveBuffer buffer;
    std::size_t union_bytes = 0, share_bytes = 0;  ///< Of now's sums: this storage's.
    bool waits = false;                            ///< Pending, with something left to wait for.
    PeakRow row;
    std::vector<PeakRow> view_rows;  ///< Of buffer.views.
  };
  void apply(const AllocatorEvent& event);
  void dispatch(const AllocatorEvent& event);
  void map(const AllocatorEvent& event);
  void begin(const AllocatorEvent& event);
  void request_free(const AllocatorEvent& event);
  void complete_free(const AllocatorEvent& event);
  [[nodiscard]] Storage& live(const AllocatorEvent& event);
  void count_wait(const AllocatorEvent& event);
  void reset_peaks(const AllocatorEvent& event);
  void list_peak();

  // timeline_views.cpp
  void add_view(const AllocatorEvent& event);
  void drop_view(const AllocatorEvent& event);
  void measure(Storage& storage);

  MemoryInstant now;
  std::unordered_map<std::uint64_t, Storage> storages;
  std::uint64_t next = 0;
  PeakRecorder peaks;
  std::optional<std::uint32_t> peak_mark;
  std::size_t shares = 0, rows = 0;  ///< Views, and the peak's rows, held.
};

}  // namespace detail

struct Timeline::State : detail::TimelineState {};

}  // namespace headroom
