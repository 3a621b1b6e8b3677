#pragma once

#include <headroom/stream.hpp>

#include <cstddef>
#include <deque>
#include <vector>

namespace headroom::detail {

/// Which work is ordered after which, derived from the waits that were issued: the `knows` matrix. A wait for ticket k
/// of p teaches what p's work was ordered after at k, not what p has learnt since, so each stream keeps its last
/// kHistory rows; for an older k the consumer learns k alone, which is less, but true. Not thread-safe.
class StreamOrder {
 public:
  static constexpr std::size_t kHistory = 256;
  /// As the consumer of an IssuedWait: the thread that issues, which has waited for the ticket itself.
  static constexpr StreamId kHost = UINT32_MAX;

  /// Streams are numbered densely from 0.
  void add_stream();
  /// Frees what the stream has learnt; it may still be waited for.
  void forget(StreamId stream);
  /// Work of `consumer` from its ticket `at` on comes after `ticket` of `producer`.
  void add_wait(StreamId consumer, Ticket at, StreamId producer, Ticket ticket);
  [[nodiscard]] Ticket knows(StreamId consumer, StreamId producer) const;
  /// The host has waited for `ticket` of `producer`.
  void add_host_wait(StreamId producer, Ticket ticket);
  [[nodiscard]] Ticket seen(StreamId producer) const;

 private:
  using Row = std::vector<Ticket>;  // by producer; missing entries are 0
  void learn(Row& row, StreamId producer, Ticket ticket) const;
  struct Snapshot {
    Ticket at = 0;
    Row row;
  };
  [[nodiscard]] const Row* row_at(StreamId stream, Ticket ticket) const;

  std::vector<std::deque<Snapshot>> history_;  // by stream, oldest first
  Row seen_;
};

}  // namespace headroom::detail
