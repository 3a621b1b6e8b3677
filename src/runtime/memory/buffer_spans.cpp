#include <headroom/buffer_spans.hpp>

#include "runtime/memory/buffer_life.hpp"
#include "runtime/memory/operation_index.hpp"

#include <algorithm>

namespace headroom {
namespace {

using detail::BufferLife;
using detail::OperationIndex;

/// The spans of one storage: states that begin at given times, clipped to [begin, end) and to one another.
class SpanWriter {
 public:
  SpanWriter(std::vector<BufferSpan>& spans, const BufferLife& life, std::int64_t end_ns)
      : spans_(spans), end_ns_(end_ns) {
    span_.allocation = life.buffer.allocation;
    span_.bytes = life.buffer.bytes;
    span_.name = life.buffer.name;
    span_.unit = life.buffer.unit;
    span_.region = life.buffer.region;
    span_.shared = life.shared;
  }
  void begin(Tag tag, std::int64_t at_ns) {
    if (begun_) close(at_ns);
    span_.begin_ns = begun_ ? std::clamp(at_ns, span_.begin_ns, std::max(span_.begin_ns, end_ns_)) : at_ns;
    span_.tag = tag;
    begun_ = true;
  }
  void end() { close(end_ns_); }

 private:
  void close(std::int64_t at_ns) {
    span_.end_ns = std::min(at_ns, end_ns_);
    if (span_.end_ns > span_.begin_ns) spans_.push_back(span_);
  }

  std::vector<BufferSpan>& spans_;
  std::int64_t end_ns_;
  BufferSpan span_;
  bool begun_ = false;
};

/// The states of one storage on the device.
class DeviceLife {
 public:
  DeviceLife(const BufferLife& life, const OperationIndex& operations) : life_(life), operations_(operations) {}

  void write(std::vector<BufferSpan>& spans) const {
    const std::int64_t begin_ns = begin();
    const std::int64_t end_ns = end();
    if (end_ns <= begin_ns) return;
    SpanWriter writer(spans, life_, end_ns);
    const Tag tag = life_.buffer.tag;
    const bool fills = tag == Tag::parameter_full_gathering || tag == Tag::parameter_full_next;
    writer.begin(fills ? Tag::parameter_full_gathering : tag, begin_ns);
    if (fills) writer.begin(Tag::parameter_full_next, filled(begin_ns));
    for (const BufferLife::Change& change : life_.changes) {
      if (change.tag == Tag::gradient_full_reducing) {
        if (const auto* last = computed()) writer.begin(Tag::gradient_full_awaiting_reduce, last->end_ns);
      }
      // Until its fill is over it is next, whatever the host called it when it asked.
      if (change.tag != Tag::parameter_full_next) writer.begin(change.tag, time_of(change, end_ns));
    }
    writer.end();
  }

 private:
  [[nodiscard]] std::int64_t begin() const {
    const LiveBuffer& buffer = life_.buffer;
    if (!operations_.reaches(buffer.stream, buffer.ticket)) return operations_.begin_ns();
    const auto* first = operations_.after(buffer.stream, buffer.ticket);
    return first != nullptr ? first->start_ns : operations_.end_ns();
  }

  [[nodiscard]] std::int64_t end() const {
    if (!life_.freed) return operations_.end_ns();
    std::int64_t end_ns = operations_.begin_ns();
    for (const LastUse& use : life_.buffer.last_uses) {
      if (const auto* last = operations_.upto(use.stream, use.ticket)) end_ns = std::max(end_ns, last->end_ns);
    }
    return end_ns;
  }

  /// The last use on its own stream, where it was freed.
  [[nodiscard]] const LastUse* own_use() const {
    const auto& uses = life_.buffer.last_uses;
    const auto own = std::ranges::find(uses, life_.buffer.stream, &LastUse::stream);
    return own == uses.end() ? nullptr : &*own;
  }

  /// The end of the operations that fill the set: those of its unit, on its stream, in one run after its ticket.
  [[nodiscard]] std::int64_t filled(std::int64_t begin_ns) const {
    const LiveBuffer& buffer = life_.buffer;
    const LastUse* use = own_use();
    const Ticket last = use != nullptr ? use->ticket : UINT64_MAX;
    std::int64_t end_ns = begin_ns;
    bool any = false;
    for (const auto& operation : operations_.from(buffer.stream, buffer.ticket)) {
      const bool fills = operation.unit == buffer.unit;
      if (operation.ticket > last || (any && !fills)) break;
      if (fills) end_ns = operation.end_ns;
      any = fills;
    }
    return end_ns;
  }

  /// The last operation that wrote the gradient before it was reduced.
  [[nodiscard]] const OperationRecord* computed() const {
    const LastUse* use = own_use();
    return use == nullptr ? nullptr : operations_.upto(use->stream, use->ticket);
  }

  [[nodiscard]] std::int64_t time_of(const BufferLife::Change& change, std::int64_t end_ns) const {
    if (change.ticket == 0) return change.time_ns;  // the host does not know; no work can have seen it before
    if (change.tag == Tag::parameter_full_retained || change.tag == Tag::gradient_full_awaiting_reduce ||
        change.tag == Tag::gradient_full_retained) {
      const auto* last = operations_.upto(change.stream, change.ticket);
      return last != nullptr ? last->end_ns : operations_.begin_ns();
    }
    const auto* first = operations_.after(change.stream, change.ticket);
    return first != nullptr ? first->start_ns : end_ns;
  }

  const BufferLife& life_;
  const OperationIndex& operations_;
};

}  // namespace

std::vector<BufferSpan> issue_spans(std::span<const LiveBuffer> live, std::span<const AllocatorEvent> events) {
  std::vector<BufferSpan> spans;
  if (events.empty()) return spans;
  for (const BufferLife& life : detail::buffer_lives(live, events)) {
    SpanWriter writer(spans, life, life.freed.value_or(events.back().time_ns));
    writer.begin(life.buffer.tag, life.before ? events.front().time_ns : life.time_ns);
    for (const BufferLife::Change& change : life.changes) writer.begin(change.tag, change.time_ns);
    writer.end();
  }
  return spans;
}

std::vector<BufferSpan> device_spans(std::span<const LiveBuffer> live, std::span<const AllocatorEvent> events,
                                     std::span<const OperationRecord> operations) {
  const OperationIndex index(operations);
  std::vector<BufferSpan> spans;
  for (const BufferLife& life : detail::buffer_lives(live, events)) DeviceLife(life, index).write(spans);
  return spans;
}

std::vector<SpanInstant> instants(std::span<const BufferSpan> spans) {
  struct Change {
    std::int64_t time_ns;
    bool begins;
    std::size_t span;
  };
  std::vector<Change> changes;
  changes.reserve(2 * spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    changes.push_back({spans[i].begin_ns, true, i});
    changes.push_back({spans[i].end_ns, false, i});
  }
  std::ranges::sort(changes, {}, &Change::time_ns);
  std::vector<SpanInstant> result;
  SpanInstant now;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const BufferSpan& span = spans[changes[i].span];
    std::size_t& bytes = now.tag_bytes[static_cast<std::size_t>(span.tag)];
    bytes = changes[i].begins ? bytes + span.bytes : bytes - span.bytes;  // wraps within one time, not beyond it
    now.live_bytes = changes[i].begins ? now.live_bytes + span.bytes : now.live_bytes - span.bytes;
    now.time_ns = changes[i].time_ns;
    if (i + 1 == changes.size() || changes[i + 1].time_ns != now.time_ns) result.push_back(now);
  }
  return result;
}

}  // namespace headroom
