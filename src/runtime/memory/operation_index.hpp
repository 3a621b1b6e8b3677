#pragma once

#include <headroom/trace.hpp>

#include <map>
#include <span>
#include <vector>

namespace headroom::detail {

/// Work by stream and ticket. Waits and skipped operations use no memory.
class OperationIndex {
 public:
  explicit OperationIndex(std::span<const OperationRecord> operations);

  /// The first work of the stream after `ticket`, and all of it.
  [[nodiscard]] const OperationRecord* after(StreamId stream, Ticket ticket) const;
  [[nodiscard]] std::span<const OperationRecord> from(StreamId stream, Ticket ticket) const;
  /// The newest work of the stream at or before `ticket`: a ticket without an operation covers what came before it.
  [[nodiscard]] const OperationRecord* upto(StreamId stream, Ticket ticket) const;
  /// Whether what the stream did next after `ticket` is known: later than that may be where the records begin.
  [[nodiscard]] bool reaches(StreamId stream, Ticket ticket) const;
  [[nodiscard]] std::int64_t begin_ns() const noexcept {
    return begin_ns_;
  }                                                                       ///< Of the first work; 0 if there is none.
  [[nodiscard]] std::int64_t end_ns() const noexcept { return end_ns_; }  ///< Of the last.

 private:
  std::map<StreamId, std::vector<OperationRecord>> work_;  ///< By ticket.
  std::map<StreamId, Ticket> first_;
  std::int64_t begin_ns_ = 0, end_ns_ = 0;
};

}  // namespace headroom::detail
