#include "runtime/memory/dependency_set.hpp"

#include <algorithm>

namespace headroom::detail {

void DependencySet::insert(StreamId stream, Ticket ticket) noexcept {
  if (collapsed_) return;
  if (size_ == kCapacity) {
    collapse();
    return;
  }
  std::uint32_t at = size_++;
  for (; at > 0 && uses_[at - 1].stream > stream; --at) uses_[at] = uses_[at - 1];
  uses_[at] = {stream, ticket};
}

bool operator==(const DependencySet& a, const DependencySet& b) noexcept {
  return a.collapsed_ == b.collapsed_ && std::ranges::equal(a.uses(), b.uses());
}

}  // namespace headroom::detail
