#include <algorithm>

#include "runtime/schedule/lifetimes.hpp"

namespace headroom {
namespace {

int& sets_of(const detail::Lifetime& buffer, ScheduleBound& live) {
  return buffer.use == SlotPlan::Slot::Use::parameters ? live.parameter_sets : live.gradient_sets;
}

}  // namespace

ScheduleBound Schedule::bound() const {
  const std::vector<detail::Lifetime> begun = detail::lifetimes_of(*this);
  std::vector<detail::Lifetime> freed = begun;
  std::stable_sort(freed.begin(), freed.end(), [](const auto& a, const auto& b) { return a.freed_op < b.freed_op; });
  ScheduleBound bound, live;
  auto next_freed = freed.begin();
  for (const detail::Lifetime& buffer : begun) {
    for (; next_freed->freed_op < buffer.first_op; ++next_freed) {
      --sets_of(*next_freed, live);
      live.communication_bytes -= next_freed->bytes;
    }
    ++sets_of(buffer, live);
    live.communication_bytes += buffer.bytes;
    bound.parameter_sets = std::max(bound.parameter_sets, live.parameter_sets);
    bound.gradient_sets = std::max(bound.gradient_sets, live.gradient_sets);
    bound.communication_bytes = std::max(bound.communication_bytes, live.communication_bytes);
  }
  return bound;
}

}  // namespace headroom
