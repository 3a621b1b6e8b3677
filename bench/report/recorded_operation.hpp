#pragma once

#include <headroom/recording.hpp>

namespace headroom::bench {

/// The operation as a trace holds it, but for its name.
[[nodiscard]] inline OperationRecord nameless(const RecordedOperation& recorded) noexcept {
  OperationRecord operation;
  operation.kind = recorded.kind;
  operation.stream = recorded.stream;
  operation.ticket = recorded.ticket;
  operation.unit = recorded.unit;
  operation.issued_ns = recorded.issued_ns;
  operation.start_ns = recorded.start_ns;
  operation.end_ns = recorded.end_ns;
  operation.producer = recorded.producer;
  operation.producer_ticket = recorded.producer_ticket;
  return operation;
}

}  // namespace headroom::bench
