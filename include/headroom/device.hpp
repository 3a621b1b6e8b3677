#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace headroom {

namespace detail {
class Backend;
}
class Trace;

enum class DeviceKind : std::uint8_t { host, cuda, simulated };

/// How the host device runs its streams. `threads`: a worker thread a stream. `seeded`: the issuing thread, which
/// defers all work until something waits, then runs ready work in an order drawn from `seed`: the tests' adversary.
/// `none`: calls no body, work is complete as it is issued, and memory is mapped but never touched: to record what the
/// runtime itself does, at any size, and what that costs.
enum class Executor : std::uint8_t { threads, seeded, none };

struct HostOptions {
  Executor executor = Executor::threads;
  std::uint64_t seed = 1;
};

struct MemoryInfo {
  std::size_t free_bytes = 0, total_bytes = 0;
};

/// A cheap, copyable handle; copies name the same machine (its streams, its clock, its trace). One rank, one Device.
/// Thread-safety: as a shared_ptr; streams made from it may be used from several threads.
class Device {
 public:
  /// Makes a new machine; nothing is shared between two calls.
  [[nodiscard]] static Device host(const HostOptions& options = {});
  /// Throws: DeviceError where this build has no CUDA backend, or the machine no such GPU.
  [[nodiscard]] static Device cuda(int index);
  [[nodiscard]] static int count(DeviceKind kind) noexcept;

  [[nodiscard]] DeviceKind kind() const noexcept;
  [[nodiscard]] std::string name() const;  ///< "host", "cuda:0".
  [[nodiscard]] MemoryInfo memory_info() const;
  [[nodiscard]] Trace& trace() const noexcept;
  /// The clock that Trace and AllocatorEvent use; never negative, monotonic.
  [[nodiscard]] std::int64_t now_ns() const noexcept;

  [[nodiscard]] detail::Backend& backend() const noexcept { return *backend_; }
  explicit Device(std::shared_ptr<detail::Backend> backend) noexcept : backend_(std::move(backend)) {}
  friend bool operator==(const Device&, const Device&) noexcept = default;

 private:
  std::shared_ptr<detail::Backend> backend_;
};

}  // namespace headroom
