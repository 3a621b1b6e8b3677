#include "runtime/core/critical_path.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

namespace headroom::detail {
namespace {

using Kind = OperationRecord::Kind;
using Record = const OperationRecord*;

class Walk {
 public:
  Walk(const std::vector<OperationRecord>& records, const std::vector<HostSpan>& host_spans, const Roles& roles,
       std::int64_t begin_ns, std::int64_t end_ns)
      : roles_(roles), record_count_(records.size()), begin_ns_(begin_ns), cursor_ns_(end_ns) {
    for (const OperationRecord& record : records) {
      by_ticket_[record.stream].push_back(&record);
      if (record.kind == Kind::work) by_end_.push_back(&record);
    }
    for (auto& entry : by_ticket_) {
      std::sort(entry.second.begin(), entry.second.end(), [](Record a, Record b) { return a->ticket < b->ticket; });
    }
    std::stable_sort(by_end_.begin(), by_end_.end(), [](Record a, Record b) { return a->end_ns < b->end_ns; });
    for (const HostSpan& span : host_spans) {
      if (span.cause == HostCause::throttle) throttles_.push_back(span);
    }
    std::sort(throttles_.begin(), throttles_.end(),
              [](const HostSpan& a, const HostSpan& b) { return a.end_ns < b.end_ns; });
  }

  CriticalPath run() {
    Record record = last_to_end();
    // No path is longer than all records; records of equal times must not send the walk in circles.
    for (std::size_t steps = record_count_; steps > 0 && record != nullptr && cursor_ns_ > begin_ns_; --steps) {
      spend(path_.host_ns, record->end_ns);
      if (record->kind == Kind::work) spend(part(record->stream), record->start_ns);
      record = before(record);
    }
    spend(path_.host_ns, begin_ns_);
    return path_;
  }

 private:
  void spend(std::int64_t& part_ns, std::int64_t until_ns) {
    const std::int64_t until = std::clamp(until_ns, begin_ns_, cursor_ns_);
    part_ns += cursor_ns_ - until;
    cursor_ns_ = until;
  }

  std::int64_t& part(StreamId stream) {
    switch (roles_.of(stream)) {
      case StreamRole::compute: return path_.compute_ns;
      case StreamRole::gather: return path_.gather_ns;
      case StreamRole::reduce: return path_.reduce_ns;
      case StreamRole::transfer: break;
    }
    return path_.host_ns;
  }

  /// Of those that began in the window, all of which have an end that counts only up to the window's.
  [[nodiscard]] Record last_to_end() const {
    Record last = nullptr;
    for (const Record record : by_end_) {
      if (record->start_ns >= cursor_ns_) continue;
      if (last == nullptr || std::min(record->end_ns, cursor_ns_) > last->end_ns) last = record;
    }
    return last;
  }

  /// The record of `stream` with the highest ticket up to `ticket`.
  [[nodiscard]] Record at_or_before(StreamId stream, Ticket ticket) const {
    const auto found = by_ticket_.find(stream);
    if (found == by_ticket_.end()) return nullptr;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), ticket,
                                        [](Ticket t, Record record) { return t < record->ticket; });
    return after == found->second.begin() ? nullptr : *std::prev(after);
  }

  [[nodiscard]] Record before(Record record) const {
    Record bound = at_or_before(record->stream, record->ticket - 1);
    if (record->kind == Kind::wait) {
      const Record awaited = at_or_before(record->producer, record->producer_ticket);
      if (bound == nullptr || (awaited != nullptr && awaited->end_ns >= bound->end_ns)) bound = awaited;
    }
    if (bound != nullptr && bound->end_ns >= record->issued_ns) return bound;
    return before_issue(record->issued_ns);
  }

  /// The operation whose end let the host go on, before it came to `issued_ns`.
  [[nodiscard]] Record before_issue(std::int64_t issued_ns) const {
    for (auto span = throttles_.rbegin(); span != throttles_.rend(); ++span) {
      if (span->end_ns > issued_ns) continue;
      const auto after = std::upper_bound(by_end_.begin(), by_end_.end(), span->end_ns,
                                          [](std::int64_t t, Record record) { return t < record->end_ns; });
      if (after != by_end_.begin() && (*std::prev(after))->end_ns >= span->start_ns) return *std::prev(after);
    }
    return nullptr;
  }

  const Roles& roles_;
  std::size_t record_count_;
  std::int64_t begin_ns_;
  std::int64_t cursor_ns_;  // all after this is attributed
  CriticalPath path_;
  std::map<StreamId, std::vector<Record>> by_ticket_;
  std::vector<Record> by_end_;  // work only
  std::vector<HostSpan> throttles_;
};

}  // namespace

Roles::Roles(const std::vector<StreamInfo>& streams) {
  for (const StreamInfo& stream : streams) {
    if (roles_.size() <= stream.id) roles_.resize(stream.id + std::size_t{1}, StreamRole::compute);
    roles_[stream.id] = stream.role;
  }
}

StreamRole Roles::of(StreamId stream) const noexcept {
  return stream < roles_.size() ? roles_[stream] : StreamRole::compute;
}

CriticalPath critical_path(const std::vector<OperationRecord>& records, const std::vector<HostSpan>& host_spans,
                           const Roles& roles, std::int64_t begin_ns, std::int64_t end_ns) {
  return Walk(records, host_spans, roles, begin_ns, end_ns).run();
}

}  // namespace headroom::detail
