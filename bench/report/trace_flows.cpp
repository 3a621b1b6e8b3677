#include "report/trace_flows.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace headroom::bench {

void WaitMatcher::settle(Lane& lane, Ticket upto, std::vector<EndedWait>& ended) {
  const auto end = lane.waiting.upper_bound(upto);
  for (auto each = lane.waiting.begin(); each != end; ++each) {
    const auto after = std::ranges::upper_bound(lane.recent, each->first, {}, &RecordedOperation::ticket);
    if (after != lane.recent.begin()) ended.push_back({each->second, *std::prev(after)});
  }
  lane.waiting.erase(lane.waiting.begin(), end);
}

std::vector<EndedWait> WaitMatcher::add(const RecordedOperation& operation) {
  constexpr std::size_t kRecent = 8192;
  std::vector<EndedWait> ended;
  Lane& own = lanes_[operation.stream];
  own.recent.push_back(operation);
  if (own.recent.size() > kRecent) own.recent.pop_front();
  settle(own, operation.ticket, ended);
  if (operation.kind == OperationRecord::Kind::wait && operation.end_ns > operation.start_ns) {
    Lane& producer = lanes_[operation.producer];
    producer.waiting.emplace(operation.producer_ticket, operation);
    if (!producer.recent.empty()) settle(producer, producer.recent.back().ticket, ended);
  }
  return ended;
}

std::vector<EndedWait> WaitMatcher::finish() {
  std::vector<EndedWait> ended;
  for (auto& [stream, lane] : lanes_) settle(lane, std::numeric_limits<Ticket>::max(), ended);
  return ended;
}

}  // namespace headroom::bench
