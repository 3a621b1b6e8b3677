#include "report/device_clock.hpp"

#include <algorithm>

namespace headroom::bench {

void DeviceClock::add(const RecordedOperation& operation, bool of_interest) {
  if (operation.kind != OperationRecord::Kind::work) return;
  std::vector<Work>& works = streams_[operation.stream];
  if (!of_interest && !works.empty() && !works.back().of_interest && works.back().last < operation.ticket) {
    works.back().last = operation.ticket;
    works.back().end_ns = operation.end_ns;
    return;
  }
  Work work;
  work.first = work.last = operation.ticket;
  work.start_ns = operation.start_ns;
  work.end_ns = operation.end_ns;
  work.of_interest = of_interest;
  works.push_back(work);
}

void DeviceClock::sort() {
  for (auto& entry : streams_)
    std::sort(entry.second.begin(), entry.second.end(), [](const Work& a, const Work& b) { return a.last < b.last; });
}

std::optional<std::int64_t> DeviceClock::after(StreamId stream, Ticket ticket) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return std::nullopt;
  const auto next = std::upper_bound(found->second.begin(), found->second.end(), ticket,
                                     [](Ticket before, const Work& work) { return before < work.last; });
  if (next == found->second.end()) return std::nullopt;
  return next->start_ns;
}

std::optional<std::int64_t> DeviceClock::complete(StreamId stream, Ticket ticket) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return std::nullopt;
  const auto next = std::upper_bound(found->second.begin(), found->second.end(), ticket,
                                     [](Ticket before, const Work& work) { return before < work.first; });
  if (next == found->second.begin()) return std::nullopt;
  return std::prev(next)->end_ns;
}

}  // namespace headroom::bench
