#pragma once

#include <headroom/buffer.hpp>
#include <headroom/error.hpp>
#include <headroom/memory_statistics.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct AllocatorOptions {
  std::size_t limit_bytes = 0;            ///< Of reserved bytes, all regions; 0: what the device has.
  std::size_t event_capacity = 1U << 18;  ///< Events kept; older ones are dropped, and counted. 0: no log.
};

/// Where an allocator's addresses lie: what a replay needs to compare its own with.
struct AllocatorLayout {
  std::size_t page_bytes = 0, limit_bytes = 0;
  std::size_t region_bytes = 0;  ///< Of addresses reserved for each region, and for the slots.
  std::array<std::uint64_t, kRegionCount> region_base{};
  std::uint64_t slot_base = 0;  ///< Of the planned part of the communication region.
};

/// Bytes that Headroom does not own, and how that figure is known.
struct ExternalBytes {
  std::size_t bytes = 0;
  std::string source;
};

/// Asked for memory that no rung below it found: gives back what it can (by freeing buffers), says whether it did.
/// Called on the allocating thread, without the allocator's mutex; it may free, not allocate.
using PressureCallback = std::function<bool(std::size_t wanted_bytes)>;

/// Stream-ordered caching allocator of one device (one rank). Every byte of every tensor comes from it.
/// Thread-safety: all members. Addresses depend only on the order of calls, never on timing.
class CachingAllocator {
 public:
  explicit CachingAllocator(const Device& device, const AllocatorOptions& options = {});
  ~CachingAllocator();  ///< Live buffers keep the storage, but must be gone before the device is.
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws: OutOfMemory, with nothing changed but counters.
  [[nodiscard]] Buffer allocate(const AllocationRequest& request, StreamRef stream);
  [[nodiscard]] std::optional<Buffer> try_allocate(const AllocationRequest& request, StreamRef stream);

  /// Backs [0, bytes) of the communication region for slots, at once. Throws: OutOfMemory; std::logic_error with live
  /// slots.
  void commit_slots(std::size_t bytes);
  /// The buffer at a planned offset. Throws: std::logic_error where it overlaps a live slot, or one whose uses `stream`
  /// is not ordered after: a schedule that breaks its own plan is an error here, never a race.
  [[nodiscard]] Buffer allocate_slot(std::size_t offset_bytes, const AllocationRequest& request, StreamRef stream);

  /// Hands the storage out as a plain pointer, for code that cannot hold a Buffer. Throws: std::logic_error for a view,
  /// or with views alive.
  [[nodiscard]] std::byte* detach(Buffer&& buffer);
  /// Frees a detached pointer as a Buffer's end would. Throws: std::logic_error, with nothing changed, for a pointer
  /// that is freed already, is another allocator's, or never was one.
  void free(std::byte* detached);

  /// Asked, in the order added, after ready and waited blocks and before pages go back.
  void add_pressure_callback(PressureCallback callback);
  /// Gives back every whole free page at a region's end whose last use the host has seen: between steps. Otherwise
  /// pages go back only when a request needs them in another region.
  void trim();

  [[nodiscard]] MemoryStatistics statistics() const;
  void reset_peak();  ///< peak <- current.
  [[nodiscard]] MemoryPeak peak() const;
  /// The text of the last refusal, empty if there was none.
  [[nodiscard]] std::string last_refusal() const;

  void mark_step(std::int64_t step);
  /// `phase` and `operation` have static lifetime.
  void mark_unit(int unit, const char* phase, const char* operation);
  /// Events from number `from` on that are still in the log, oldest first.
  [[nodiscard]] std::vector<AllocatorEvent> events(std::uint64_t from = 0) const;
  [[nodiscard]] std::uint64_t dropped_events() const;
  [[nodiscard]] std::vector<std::string> names() const;

  /// Bytes that Headroom does not own (library workspaces); replaces an earlier figure of that name.
  void register_external(const std::string& name, std::size_t bytes, const std::string& source);
  [[nodiscard]] std::map<std::string, ExternalBytes> external() const;
  [[nodiscard]] AllocatorLayout layout() const;

  [[nodiscard]] Device device() const;
  /// Verifies every invariant from scratch, O(blocks). Throws: std::logic_error naming the first one broken.
  void check() const;

 private:
  friend struct detail::AllocatorState;
  std::shared_ptr<detail::AllocatorState> state_;
};

}  // namespace headroom
