#pragma once

#include <headroom/recording.hpp>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headroom::bench {

/// When the tickets of a run's streams were reached, from its operations. Those between the times of interest count as
/// one, so that a long run costs no more than what is shown of it.
class DeviceClock {
 public:
  /// In any order.
  void add(const RecordedOperation& operation, bool of_interest);
  void sort();  ///< After the last one.

  /// The start of the first operation after `ticket`; none: nothing followed.
  [[nodiscard]] std::optional<std::int64_t> after(StreamId stream, Ticket ticket) const;
  /// The end of the last operation up to `ticket`; none: there was none.
  [[nodiscard]] std::optional<std::int64_t> complete(StreamId stream, Ticket ticket) const;

 private:
  struct Work {
    Ticket first = 0, last = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    bool of_interest = false;
  };
  std::unordered_map<StreamId, std::vector<Work>> streams_;  ///< By ticket.
};

}  // namespace headroom::bench
