#include "runtime/memory/operation_index.hpp"

#include <algorithm>

namespace headroom::detail {

OperationIndex::OperationIndex(std::span<const OperationRecord> operations) {
  bool any = false;
  for (const OperationRecord& record : operations) {
    const auto [first, is_new] = first_.emplace(record.stream, record.ticket);
    if (!is_new) first->second = std::min(first->second, record.ticket);
    if (record.kind != OperationRecord::Kind::work) continue;
    work_[record.stream].push_back(record);
    begin_ns_ = any ? std::min(begin_ns_, record.start_ns) : record.start_ns;
    end_ns_ = any ? std::max(end_ns_, record.end_ns) : record.end_ns;
    any = true;
  }
  for (auto& entry : work_) std::ranges::sort(entry.second, {}, &OperationRecord::ticket);
}

std::span<const OperationRecord> OperationIndex::from(StreamId stream, Ticket ticket) const {
  const auto found = work_.find(stream);
  if (found == work_.end()) return {};
  const auto first = std::ranges::upper_bound(found->second, ticket, {}, &OperationRecord::ticket);
  return {first, found->second.end()};
}

const OperationRecord* OperationIndex::after(StreamId stream, Ticket ticket) const {
  const std::span<const OperationRecord> rest = from(stream, ticket);
  return rest.empty() ? nullptr : rest.data();
}

const OperationRecord* OperationIndex::upto(StreamId stream, Ticket ticket) const {
  const auto found = work_.find(stream);
  if (found == work_.end()) return nullptr;
  const auto after = std::ranges::upper_bound(found->second, ticket, {}, &OperationRecord::ticket);
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

bool OperationIndex::reaches(StreamId stream, Ticket ticket) const {
  const auto found = first_.find(stream);
  return found != first_.end() && found->second <= ticket + 1;
}

}  // namespace headroom::detail
