#pragma once

#include <headroom/recording.hpp>

#include <deque>
#include <map>

namespace headroom::bench {

/// The operation that ended a wait: the last one of its stream up to the ticket waited for.
struct EndedWait {
  RecordedOperation wait, producer;
};

/// Finds the operation behind each wait. Operations come with their tickets rising in each stream; those of different
/// streams may come in any order, a few thousand apart.
class WaitMatcher {
 public:
  /// What this operation settles, itself or others.
  [[nodiscard]] std::vector<EndedWait> add(const RecordedOperation& operation);
  /// What is settled now that no more come.
  [[nodiscard]] std::vector<EndedWait> finish();

 private:
  struct Lane {
    std::deque<RecordedOperation> recent;
    std::multimap<Ticket, RecordedOperation> waiting;  ///< By the ticket waited for.
  };
  static void settle(Lane& lane, Ticket upto, std::vector<EndedWait>& ended);

  std::map<StreamId, Lane> lanes_;
};

}  // namespace headroom::bench
