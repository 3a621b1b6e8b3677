#include <headroom/device.hpp>

#include "runtime/core/backend.hpp"

namespace headroom {

Device Device::host(const HostOptions& options) { return Device(detail::make_host_backend(options)); }
Device Device::cuda(int index) { return Device(detail::make_cuda_backend(index)); }

int Device::count(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::host: return 1;
    case DeviceKind::cuda: return detail::cuda_device_count();
    case DeviceKind::simulated: break;
  }
  return 0;
}

DeviceKind Device::kind() const noexcept { return backend_->kind(); }
std::string Device::name() const { return backend_->name(); }
MemoryInfo Device::memory_info() const { return backend_->memory_info(); }
Trace& Device::trace() const noexcept { return backend_->trace(); }
std::int64_t Device::now_ns() const noexcept { return backend_->now_ns(); }

}  // namespace headroom
