#include <headroom/allocator.hpp>

#include "runtime/memory/allocator_state.hpp"

namespace headroom {

using detail::AllocatorState;

CachingAllocator::CachingAllocator(const Device& device, const AllocatorOptions& options)
    : state_(std::make_shared<AllocatorState>(device, options)) {}

CachingAllocator::~CachingAllocator() { state_->end(); }

Buffer CachingAllocator::allocate(const AllocationRequest& request, StreamRef stream) {
  return state_->allocate(state_, request, stream, true);
}

std::optional<Buffer> CachingAllocator::try_allocate(const AllocationRequest& request, StreamRef stream) {
  Buffer buffer = state_->allocate(state_, request, stream, false);
  return buffer ? std::optional<Buffer>(std::move(buffer)) : std::nullopt;
}

void CachingAllocator::commit_slots(std::size_t bytes) { state_->commit_slots(bytes); }

Buffer CachingAllocator::allocate_slot(std::size_t offset_bytes, const AllocationRequest& request, StreamRef stream) {
  return state_->allocate_slot(state_, offset_bytes, request, stream);
}

std::byte* CachingAllocator::detach(Buffer&& buffer) { return state_->detach(buffer); }
void CachingAllocator::free(std::byte* detached) { state_->free(detached); }

void CachingAllocator::add_pressure_callback(PressureCallback callback) {
  const AllocatorState::Lock lock(state_->mutex);
  state_->callbacks.push_back(std::move(callback));
}

void CachingAllocator::trim() { state_->trim(); }

MemoryStatistics CachingAllocator::statistics() const { return state_->statistics(); }
void CachingAllocator::reset_peak() { state_->reset_peak(); }
MemoryPeak CachingAllocator::peak() const { return state_->peak(); }

std::string CachingAllocator::last_refusal() const {
  const AllocatorState::Lock lock(state_->mutex);
  return state_->refusal;
}

void CachingAllocator::mark_step(std::int64_t step) { state_->mark_step(step); }

void CachingAllocator::mark_unit(int unit, const char* phase, const char* operation) {
  state_->mark_unit(unit, phase, operation);
}

std::vector<AllocatorEvent> CachingAllocator::events(std::uint64_t from) const {
  const AllocatorState::Lock lock(state_->mutex);
  return state_->log.since(from);
}

std::uint64_t CachingAllocator::dropped_events() const {
  const AllocatorState::Lock lock(state_->mutex);
  return state_->log.dropped();
}

std::vector<std::string> CachingAllocator::names() const {
  const AllocatorState::Lock lock(state_->mutex);
  return state_->log.names();
}

void CachingAllocator::register_external(const std::string& name, std::size_t bytes, const std::string& source) {
  const AllocatorState::Lock lock(state_->mutex);
  state_->external[name] = {bytes, source};
}

std::map<std::string, ExternalBytes> CachingAllocator::external() const {
  const AllocatorState::Lock lock(state_->mutex);
  return state_->external;
}

AllocatorLayout CachingAllocator::layout() const {
  AllocatorLayout layout;
  layout.page_bytes = state_->page_bytes;
  layout.limit_bytes = state_->limit_bytes;
  layout.region_bytes = state_->capacity_bytes;
  for (std::size_t region = 0; region < layout.region_base.size(); ++region) {
    layout.region_base[region] = reinterpret_cast<std::uintptr_t>(state_->arenas[region].base);
  }
  layout.slot_base = reinterpret_cast<std::uintptr_t>(state_->slot_base);
  return layout;
}

Device CachingAllocator::device() const { return state_->device; }
void CachingAllocator::check() const { state_->check(); }

}  // namespace headroom
