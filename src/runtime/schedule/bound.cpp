#include <algorithm>
#include <set>

#include "runtime/schedule/lifetimes.hpp"

namespace headroom {
namespace {

using Use = SlotPlan::Slot::Use;

/// What is live at one line. Reduction buffers are used one after the other on the reduce stream, so those that are
/// outstanding together need the largest one's bytes.
class Live {
 public:
  void add(const detail::Lifetime& buffer) {
    if (buffer.use == Use::reduction) {
      reductions_.insert(buffer.bytes);
      return;
    }
    ++sets(buffer);
    bytes_ += buffer.bytes;
  }

  void remove(const detail::Lifetime& buffer) {
    if (buffer.use == Use::reduction) {
      reductions_.erase(reductions_.find(buffer.bytes));
      return;
    }
    --sets(buffer);
    bytes_ -= buffer.bytes;
  }

  void raise(ScheduleBound& bound) const {
    bound.parameter_sets = std::max(bound.parameter_sets, parameter_sets_);
    bound.gradient_sets = std::max(bound.gradient_sets, gradient_sets_);
    const std::size_t reduction = reductions_.empty() ? 0 : *reductions_.rbegin();
    bound.communication_bytes = std::max(bound.communication_bytes, bytes_ + reduction);
  }

 private:
  int& sets(const detail::Lifetime& buffer) { return buffer.use == Use::parameters ? parameter_sets_ : gradient_sets_; }

  int parameter_sets_ = 0, gradient_sets_ = 0;
  std::size_t bytes_ = 0;
  std::multiset<std::size_t> reductions_;
};

}  // namespace

ScheduleBound Schedule::bound() const {
  const std::vector<detail::Lifetime> begun = detail::lifetimes_of(*this);
  std::vector<detail::Lifetime> freed = begun;
  std::stable_sort(freed.begin(), freed.end(), [](const auto& a, const auto& b) { return a.freed_op < b.freed_op; });
  ScheduleBound bound;
  Live live;
  auto next_freed = freed.begin();
  for (const detail::Lifetime& buffer : begun) {
    for (; next_freed->freed_op < buffer.first_op; ++next_freed) live.remove(*next_freed);
    live.add(buffer);
    live.raise(bound);
  }
  return bound;
}

}  // namespace headroom
