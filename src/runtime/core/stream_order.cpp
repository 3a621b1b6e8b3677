#include "runtime/core/stream_order.hpp"

#include <algorithm>
#include <utility>

namespace headroom::detail {

void StreamOrder::add_stream() { history_.emplace_back(); }

void StreamOrder::forget(StreamId stream) { history_[stream].clear(); }

const StreamOrder::Row* StreamOrder::row_at(StreamId stream, Ticket ticket) const {
  const std::deque<Snapshot>& history = history_[stream];
  const auto newer = std::upper_bound(history.begin(), history.end(), ticket,
                                      [](Ticket t, const Snapshot& snapshot) { return t < snapshot.at; });
  return newer == history.begin() ? nullptr : &std::prev(newer)->row;
}

void StreamOrder::learn(Row& row, StreamId producer, Ticket ticket) const {
  if (const Row* learnt = row_at(producer, ticket)) {
    if (row.size() < learnt->size()) row.resize(learnt->size(), 0);
    std::transform(learnt->begin(), learnt->end(), row.begin(), row.begin(),
                   [](Ticket a, Ticket b) { return std::max(a, b); });
  }
  if (row.size() <= producer) row.resize(producer + std::size_t{1}, 0);
  row[producer] = std::max(row[producer], ticket);
}

void StreamOrder::add_wait(StreamId consumer, Ticket at, StreamId producer, Ticket ticket) {
  std::deque<Snapshot>& history = history_[consumer];
  Row row = history.empty() ? Row{} : history.back().row;
  learn(row, producer, ticket);
  history.push_back(Snapshot{at, std::move(row)});
  if (history.size() > kHistory) history.pop_front();
}

void StreamOrder::add_host_wait(StreamId producer, Ticket ticket) { learn(seen_, producer, ticket); }

Ticket StreamOrder::seen(StreamId producer) const { return producer < seen_.size() ? seen_[producer] : 0; }

Ticket StreamOrder::knows(StreamId consumer, StreamId producer) const {
  const std::deque<Snapshot>& history = history_[consumer];
  if (history.empty() || history.back().row.size() <= producer) return 0;
  return history.back().row[producer];
}

}  // namespace headroom::detail
