#include "runtime/memory/dependency_set.hpp"

#include <algorithm>

namespace headroom::detail {

void DependencySet::add(StreamId stream, Ticket ticket) noexcept {
  if (collapsed_) return;
  std::uint32_t at = 0;
  while (at < size_ && uses_[at].stream < stream) ++at;
  if (at < size_ && uses_[at].stream == stream) {
    uses_[at].ticket = std::max(uses_[at].ticket, ticket);
    return;
  }
  if (size_ == kCapacity) {
    collapse();
    return;
  }
  for (std::uint32_t i = size_; i > at; --i) uses_[i] = uses_[i - 1];
  uses_[at] = {stream, ticket};
  ++size_;
}

void DependencySet::merge(const DependencySet& other) noexcept {
  if (other.collapsed_) collapse();
  for (const StreamUse& use : other.uses()) add(use.stream, use.ticket);
}

void DependencySet::collapse() noexcept {
  size_ = 0;
  collapsed_ = true;
}

void DependencySet::clear() noexcept {
  size_ = 0;
  collapsed_ = false;
}

bool operator==(const DependencySet& a, const DependencySet& b) noexcept {
  return a.collapsed_ == b.collapsed_ && std::ranges::equal(a.uses(), b.uses());
}

}  // namespace headroom::detail
