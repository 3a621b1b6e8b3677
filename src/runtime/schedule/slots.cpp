#include "runtime/schedule/lifetimes.hpp"
#include "runtime/schedule/packing.hpp"

namespace headroom {
namespace {

constexpr std::size_t kLargestAlignment = std::size_t{1} << 30;

}  // namespace

SlotPlan pack_slots(const Schedule& schedule, std::size_t alignment_bytes) {
  if (alignment_bytes == 0 || alignment_bytes > kLargestAlignment) {
    throw InvalidInput("pack_slots: alignment " + std::to_string(alignment_bytes) + ": expected 1 byte to 1 GiB");
  }
  const std::vector<detail::Lifetime> lifetimes = detail::lifetimes_of(schedule);
  std::vector<detail::PackItem> items;
  items.reserve(lifetimes.size());
  for (const detail::Lifetime& each : lifetimes) {
    const std::size_t bytes = (each.bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    items.push_back({each.known_op, each.freed_op + 1, bytes});
  }
  const detail::Packing packing = detail::pack(items);
  detail::verify_packing(items, packing);

  SlotPlan plan;
  plan.high_water_bytes = packing.high_water_bytes;
  plan.slots.reserve(lifetimes.size());
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const detail::Lifetime& each = lifetimes[i];
    plan.slots.push_back({each.use, each.unit, each.first_op, each.freed_op, packing.offsets[i], each.bytes});
  }
  return plan;
}

}  // namespace headroom
