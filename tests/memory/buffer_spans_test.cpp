#include <headroom/buffer_spans.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>

namespace headroom {

static bool operator==(const BufferSpan& a, const BufferSpan& b) {
  return a.allocation == b.allocation && a.bytes == b.bytes && a.begin_ns == b.begin_ns && a.end_ns == b.end_ns &&
         a.unit == b.unit && a.tag == b.tag;
}
static std::ostream& operator<<(std::ostream& out, const BufferSpan& span) {
  return out << "{" << span.allocation << " " << name_of(span.tag) << " of " << span.unit << ": " << span.bytes
             << " in [" << span.begin_ns << ", " << span.end_ns << ")}";
}

namespace {

using Kind = AllocatorEvent::Kind;
using Spans = std::vector<BufferSpan>;

constexpr StreamId kCompute = 0, kGather = 1, kReduce = 2;

/// A log and a trace, written by hand. Times of the log are 10, 20, ...
struct Story {
  std::vector<AllocatorEvent> events;
  std::vector<OperationRecord> operations;

  AllocatorEvent& event(Kind kind, std::uint64_t allocation, Tag tag, StreamId stream, Ticket ticket) {
    AllocatorEvent& event = events.emplace_back();
    event.number = events.size() - 1;
    event.time_ns = static_cast<std::int64_t>(10 * events.size());
    event.kind = kind;
    event.allocation = allocation;
    event.tag = tag;
    event.stream = stream;
    event.ticket = ticket;
    return event;
  }
  void alloc(std::uint64_t allocation, std::size_t bytes, int unit, Tag tag, StreamId stream, Ticket after) {
    AllocatorEvent& made = event(Kind::alloc, allocation, tag, stream, after);
    made.bytes = made.requested_bytes = bytes;
    made.unit = unit;
  }
  void work(StreamId stream, Ticket ticket, int unit, std::int64_t start_ns, std::int64_t end_ns,
            OperationRecord::Kind kind = OperationRecord::Kind::work) {
    OperationRecord record;
    record.kind = kind;
    record.stream = stream;
    record.ticket = ticket;
    record.unit = unit;
    record.start_ns = start_ns;
    record.end_ns = end_ns;
    operations.push_back(record);
  }
  [[nodiscard]] Spans on_device() const { return device_spans({}, events, operations); }
};

BufferSpan span(std::uint64_t allocation, std::size_t bytes, int unit, Tag tag, std::int64_t begin, std::int64_t end) {
  BufferSpan made;
  made.allocation = allocation;
  made.bytes = bytes;
  made.begin_ns = begin;
  made.end_ns = end;
  made.unit = unit;
  made.tag = tag;
  return made;
}

/// Unit 4's set is gathered ahead (cast, then sent), waits for its visit, is computed with and given back; its gradient
/// is computed, waits for the reduction before it, and is reduced. All issued long before the device gets there.
Story backward_of_unit_4() {
  Story story;
  story.alloc(0, 100, 4, Tag::parameter_shard, kCompute, 0);
  story.alloc(1, 400, 4, Tag::parameter_full_next, kGather, 1);
  story.event(Kind::retag, 1, Tag::parameter_full_current, kCompute, 2);
  story.alloc(2, 300, 4, Tag::gradient_full_computing, kCompute, 2);
  story.event(Kind::use, 1, Tag::parameter_full_current, kCompute, 4);
  story.event(Kind::free_requested, 1, Tag::parameter_full_current, kGather, 3);
  story.event(Kind::free_completed, 1, Tag::parameter_full_current, kGather, 0);
  story.event(Kind::retag, 2, Tag::gradient_full_reducing, kReduce, 2);
  story.event(Kind::use, 2, Tag::gradient_full_reducing, kReduce, 3);
  story.event(Kind::free_requested, 2, Tag::gradient_full_reducing, kCompute, 4);
  story.event(Kind::free_completed, 2, Tag::gradient_full_reducing, kCompute, 0);
  story.work(kCompute, 1, 9, 1000, 1400);  // the visit before
  story.work(kCompute, 2, -1, 1400, 1500, OperationRecord::Kind::wait);
  story.work(kCompute, 3, 4, 1500, 1550);
  story.work(kCompute, 4, 4, 1550, 2000);
  story.work(kCompute, 5, 3, 2000, 2600);
  story.work(kGather, 1, 9, 900, 1000);
  story.work(kGather, 2, 4, 1100, 1200);
  story.work(kGather, 3, 4, 1200, 1450);
  story.work(kGather, 4, 3, 1450, 1700);
  story.work(kReduce, 1, 9, 1400, 2100);
  story.work(kReduce, 2, -1, 2100, 2100, OperationRecord::Kind::wait);
  story.work(kReduce, 3, 4, 2100, 2300);
  return story;
}

TEST(DeviceSpans, OneVisit_IsSplitByWhatTheStreamsDid) {
  const Spans expected{
      span(0, 100, 4, Tag::parameter_shard, 1000, 2600),
      span(1, 400, 4, Tag::parameter_full_gathering, 1100, 1450),
      span(1, 400, 4, Tag::parameter_full_next, 1450, 1500),
      span(1, 400, 4, Tag::parameter_full_current, 1500, 2000),
      span(2, 300, 4, Tag::gradient_full_computing, 1500, 2000),
      span(2, 300, 4, Tag::gradient_full_awaiting_reduce, 2000, 2100),
      span(2, 300, 4, Tag::gradient_full_reducing, 2100, 2300),
  };
  Story story = backward_of_unit_4();
  EXPECT_EQ(story.on_device(), expected);
  std::ranges::reverse(story.operations);
  EXPECT_EQ(story.on_device(), expected) << "the order of operations matters";
}

TEST(IssueSpans, OneVisit_IsSplitByWhatTheHostAsked) {
  const Story story = backward_of_unit_4();
  const Spans expected{
      span(0, 100, 4, Tag::parameter_shard, 10, 110),        span(1, 400, 4, Tag::parameter_full_next, 20, 30),
      span(1, 400, 4, Tag::parameter_full_current, 30, 60),  span(2, 300, 4, Tag::gradient_full_computing, 40, 80),
      span(2, 300, 4, Tag::gradient_full_reducing, 80, 100),
  };
  EXPECT_EQ(issue_spans({}, story.events), expected);
}

TEST(DeviceSpans, Instants_SumToWhatIsLive) {
  const std::vector<SpanInstant> found = instants(backward_of_unit_4().on_device());
  std::vector<std::pair<std::int64_t, std::size_t>> curve;
  for (const SpanInstant& instant : found) {
    curve.emplace_back(instant.time_ns, instant.live_bytes);
    EXPECT_EQ(std::accumulate(instant.tag_bytes.begin(), instant.tag_bytes.end(), std::size_t{0}), instant.live_bytes);
  }
  const std::vector<std::pair<std::int64_t, std::size_t>> expected{{1000, 100}, {1100, 500}, {1450, 500}, {1500, 800},
                                                                   {2000, 400}, {2100, 400}, {2300, 100}, {2600, 0}};
  EXPECT_EQ(curve, expected);
}

TEST(DeviceSpans, KeptSet_IsRetainedFromTheEndOfItsVisitToTheNextOne) {
  Story story;
  story.alloc(0, 400, 1, Tag::parameter_full_gathering, kGather, 0);
  story.event(Kind::retag, 0, Tag::parameter_full_current, kCompute, 0);
  story.event(Kind::retag, 0, Tag::parameter_full_retained, kCompute, 1);
  story.event(Kind::retag, 0, Tag::parameter_full_current, kCompute, 2);
  story.event(Kind::use, 0, Tag::parameter_full_current, kCompute, 3);
  story.event(Kind::free_requested, 0, Tag::parameter_full_current, kGather, 1);
  story.work(kGather, 1, 1, 0, 100);
  story.work(kCompute, 1, 1, 100, 200);
  story.work(kCompute, 2, 2, 250, 400);
  story.work(kCompute, 3, 1, 450, 500);
  const Spans expected{
      span(0, 400, 1, Tag::parameter_full_gathering, 0, 100), span(0, 400, 1, Tag::parameter_full_current, 100, 200),
      span(0, 400, 1, Tag::parameter_full_retained, 200, 450), span(0, 400, 1, Tag::parameter_full_current, 450, 500)};
  EXPECT_EQ(story.on_device(), expected);
}

TEST(DeviceSpans, OneCommunicator_TheReductionOfTheUnitIsNoPartOfItsGather) {
  Story story;
  story.alloc(0, 400, 1, Tag::parameter_full_gathering, kGather, 0);
  story.event(Kind::retag, 0, Tag::parameter_full_current, kCompute, 0);
  story.event(Kind::use, 0, Tag::parameter_full_current, kCompute, 1);
  story.event(Kind::free_requested, 0, Tag::parameter_full_current, kGather, 1);
  story.work(kGather, 1, 1, 0, 100);
  story.work(kGather, 2, 1, 200, 300);  // its reduce-scatter
  story.work(kCompute, 1, 1, 150, 200);
  EXPECT_EQ(story.on_device().front().end_ns, 100);
}

TEST(DeviceSpans, UnusedStorage_DoesNotAppear) {
  Story story;
  story.alloc(0, 400, -1, Tag::activation, kCompute, 1);
  story.event(Kind::free_requested, 0, Tag::activation, kCompute, 2);  // ticket 2: a mark
  story.work(kCompute, 1, -1, 0, 100);
  story.work(kCompute, 3, -1, 100, 200);
  EXPECT_EQ(story.on_device(), Spans{});
}

/// Spans of a window are those of the whole log, cut.
TEST(DeviceSpans, Window_OfALogGoesOnFromWhatWasLive) {
  Story story = backward_of_unit_4();
  for (std::size_t cut = 0; cut <= story.events.size(); ++cut) {
    Timeline timeline;
    const std::span<const AllocatorEvent> all(story.events);
    for (const AllocatorEvent& event : all.first(cut)) timeline.apply(event);
    Spans spans = device_spans(timeline.live(), all.subspan(cut), story.operations);
    std::size_t live = 0;
    for (const BufferSpan& each : spans) live += each.allocation == 0 ? each.bytes : 0;
    EXPECT_EQ(live, 100U) << "cut before event " << cut;
    for (const SpanInstant& instant : instants(spans)) EXPECT_LE(instant.live_bytes, 800U);
    const Spans issued = issue_spans(timeline.live(), all.subspan(cut));
    EXPECT_EQ(issued.size(), cut == 6 ? 3U : issued.size());  // the set is gone, its memory pending
  }
}

TEST(UnitLifetimes, ShardBesideTheFullSet_IsMeasured) {
  const std::vector<UnitLifetimes> units = unit_lifetimes(backward_of_unit_4().on_device());
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].unit, 4);
  EXPECT_EQ(units[0].storage, ShardStorage::separate);
  EXPECT_EQ(units[0].shard_bytes, 100U);
  EXPECT_EQ(units[0].full_bytes, 400U);
  EXPECT_EQ(units[0].longest_overlap_ns, 900);
  EXPECT_DOUBLE_EQ(units[0].overlap_byte_seconds, 400 * 900e-9);
  ASSERT_EQ(units[0].sets.size(), 1U);
  EXPECT_EQ(units[0].sets[0].gathering_ns, 350);
  EXPECT_EQ(units[0].sets[0].idle_ns, 50);
  EXPECT_EQ(units[0].sets[0].used_ns, 500);
}

TEST(UnitLifetimes, ShardThatIsViewedWhole_IsShared) {
  Story story;
  story.alloc(0, 100, 0, Tag::parameter_shard, kCompute, 0);
  AllocatorEvent& view = story.event(Kind::view, 0, Tag::parameter_shard, kCompute, 0);
  view.bytes = view.requested_bytes = 100;
  story.alloc(1, 100, 1, Tag::parameter_shard, kCompute, 0);
  story.event(Kind::view, 1, Tag::parameter_shard, kCompute, 0).bytes = 40;
  story.work(kCompute, 1, 0, 0, 10);
  const std::vector<UnitLifetimes> units = unit_lifetimes(story.on_device());
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].storage, ShardStorage::shared);
  EXPECT_EQ(units[0].longest_overlap_ns, 0);
  EXPECT_EQ(units[1].storage, ShardStorage::none);
}

}  // namespace
}  // namespace headroom
