#include <headroom/parameters.hpp>
#include <headroom/trace.hpp>

#include <algorithm>
#include <map>

namespace headroom {

namespace {

using Records = std::map<StreamId, std::vector<OperationRecord>>;

/// The newest record of `stream` at or before `ticket`: a ticket without an operation covers what came before it.
const OperationRecord* record_at(const Records& records, StreamId stream, Ticket ticket) {
  const auto found = records.find(stream);
  if (found == records.end()) {
    return nullptr;
  }
  const auto after = std::upper_bound(found->second.begin(), found->second.end(), ticket,
                                      [](Ticket t, const OperationRecord& record) { return t < record.ticket; });
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

int live_sets_peak(std::span<const SetLifetime> lifetimes, bool gradients, const Trace& trace) {
  Records records;
  for (const OperationRecord& record : trace.operations()) {
    records[record.stream].push_back(record);
  }
  for (auto& [stream, list] : records) {
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.ticket < b.ticket; });
  }
  // (time, +1 or -1): at one instant an end comes before a beginning, since the device orders the one after the other.
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const SetLifetime& life : lifetimes) {
    const OperationRecord* begin = record_at(records, life.begin_stream, life.begin);
    const OperationRecord* end = record_at(records, life.end_stream, life.end);
    if (life.gradient == gradients && begin != nullptr && end != nullptr) {
      changes.emplace_back(begin->start_ns, 1);
      changes.emplace_back(end->end_ns, -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  int live = 0;
  int peak = 0;
  for (const auto& [time_ns, change] : changes) {
    live += change;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace headroom
