#pragma once

#include <headroom/buffer_spans.hpp>

#include "report/page_source.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::bench {

/// A step of a log; the first one is what came before step 1 (set-up).
struct StepSummary {
  std::int64_t step = 0;                         ///< 0: set-up.
  std::uint64_t begin_event = 0, end_event = 0;  ///< end_event is the next step's first.
  std::int64_t host_begin_ns = 0, host_end_ns = 0;
  std::int64_t device_begin_ns = 0, device_end_ns = 0;  ///< Of the operations issued in it; else as the host's.
  std::size_t peak_allocated = 0, peak_active = 0, peak_reserved = 0;
  std::uint64_t peak_event = 0;
  std::size_t rows = 0;  ///< What showing it in full costs.
};

/// The whole run at a glance.
struct RunOverview {
  std::vector<StepSummary> steps;
  MemoryPeak peak;
  std::size_t peak_step = 0;  ///< Which of the steps has it.
};

/// What became of a block, in issue order.
struct BlockChange {
  enum class To : std::uint8_t { live, pending, gone };
  std::uint64_t event = 0;
  std::int64_t host_ns = 0;
  To to = To::live;
  Tag tag = Tag::other;
};

struct PageBlock {
  std::uint64_t allocation = 0;
  std::uint32_t name = 0;
  int unit = -1;
  Region region = Region::transients;
  std::size_t bytes = 0, requested_bytes = 0;
  std::vector<BlockChange> changes;  ///< The first one: what it was as the step began, or its alloc.
};

struct ReservedChange {
  std::uint64_t event = 0;
  std::int64_t host_ns = 0;
  Region region = Region::transients;
  std::size_t bytes = 0;  ///< Of the region, after it.
};

/// What views make of the live bytes: their union, and each share by itself, which counts views twice.
struct ViewChange {
  std::uint64_t event = 0;
  std::size_t union_bytes = 0, share_bytes = 0;
};

struct UnitMark {
  std::uint64_t event = 0;
  std::int64_t host_ns = 0;
  int unit = -1;
  std::uint32_t name = 0;
};

/// Everything of a step, or of `begin_event` to `end_event` of a step too long to show whole.
struct StepDetail {
  StepSummary summary;
  std::uint64_t begin_event = 0, end_event = 0;
  std::vector<PageBlock> blocks;         ///< That lived in it.
  std::vector<BufferSpan> device_spans;  ///< Of these blocks, in device time. Empty without operations.
  std::vector<ReservedChange> reserved;  ///< The first ones, one a region: as it began.
  std::vector<ViewChange> views;         ///< Empty where there is no view.
  std::vector<UnitMark> marks;
  std::vector<RecordedOperation> operations;
  std::vector<HostSpan> host_spans;
  std::vector<LiveBuffer> live;        ///< As it began; only while it is read, as are
  std::vector<AllocatorEvent> events;  ///< its events.
};

[[nodiscard]] RunOverview overview(const PageSource& source);

/// The steps to show in full, in order: the peak's, the first ones, the last ones, as many as `rows` allow.
[[nodiscard]] std::vector<StepDetail> details(const PageSource& source, const RunOverview& run, std::size_t rows);

}  // namespace headroom::bench
