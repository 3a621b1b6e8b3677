#pragma once

#include <headroom/allocator.hpp>

#include "runtime/core/backend.hpp"
#include "runtime/memory/block_pool.hpp"
#include "runtime/memory/event_log.hpp"
#include "runtime/memory/metric.hpp"
#include "runtime/memory/peak.hpp"
#include "runtime/memory/record_table.hpp"
#include "runtime/memory/slot_area.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace headroom::detail {

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;
inline constexpr std::size_t kSweep = 8;  ///< Pending frees that a call looks at.
/// A use of a live allocation: whatever is enqueued until it is freed. Ticket 0: the same, unless a last use is named.
inline constexpr Ticket kUntilFreed = UINT64_MAX;

/// One allocation, from its request until its free is completed.
struct Allocation {
  enum class State : std::uint8_t { unused, live, pending };
  std::uint64_t id = 0, event = 0;  ///< `event`: the number of its alloc event.
  std::size_t offset = 0;           ///< In its arena, or in the slot area.
  std::size_t bytes = 0, requested_bytes = 0;
  DependencySet uses;  ///< Live: the streams that use it, see kUntilFreed. Pending: what it waits for.
  std::uint32_t name = 0;
  int unit = -1;
  StreamId stream = 0;
  BlockPool::Index block = BlockPool::kNone;  ///< None: a slot, or no bytes.
  std::uint32_t shares = 1;
  std::uint32_t pending_before = kNoIndex, pending_after = kNoIndex;
  PeakRow peak_row;
  Region region = Region::transients;
  Tag tag = Tag::other;
  State state = State::unused;
  bool slot = false;
};

/// A share other than the first.
struct View {
  std::uint32_t allocation = kNoIndex;  ///< kNoIndex: unused.
  std::uint64_t event = 0;
  std::size_t offset = 0, bytes = 0;  ///< `offset`: within the allocation.
  std::uint32_t name = 0;
  PeakRow peak_row;
};

/// An address range, committed from its start as far as its pool reaches.
struct Arena {
  std::byte* base = nullptr;
  BlockPool pool;
};

/// A pointer that detach() gave out; kept after its free, until its address is given out again, to name a second one.
struct Detached {
  std::uint32_t allocation = kNoIndex;
  std::uint64_t id = 0;
  std::uint32_t name = 0;
  bool freed = false;
};

/// What one attempt to place a request has learnt and done.
struct Attempt {
  struct Returned {
    Region region;
    std::size_t bytes;
  };
  std::size_t bytes;  ///< Whole granules.
  StreamRef stream;
  Region region;
  Rung rung = Rung::ready;  ///< The highest that it took so far.
  std::size_t asked = 0;    ///< Pressure callbacks.
  bool retried = false;
  bool device_full = false;        ///< The device refused pages below the limit.
  std::size_t returned_bytes = 0;  ///< Given back to the device since, and not taken again.
  std::vector<Returned> returned = {};
  bool slots = false;  ///< For slots: their pages lie apart, so the region's own blocks may give theirs back too.
  [[nodiscard]] bool takes_from(Region other) const noexcept { return slots || other != region; }
};

/// Everything behind CachingAllocator and Buffer. Members without a lock argument need the mutex held, except the
/// entry points, which take it.
struct AllocatorState {
  using Lock = std::unique_lock<std::mutex>;
  using Self = std::shared_ptr<AllocatorState>;  ///< What a buffer is given to keep.

  AllocatorState(const Device& on, const AllocatorOptions& options);
  AllocatorState(const AllocatorState&) = delete;
  AllocatorState& operator=(const AllocatorState&) = delete;
  ~AllocatorState();
  [[nodiscard]] static AllocatorState& of(const CachingAllocator& allocator) { return *allocator.state_; }

  // Entry points.
  /// An empty buffer, or (`must`) OutOfMemory, where the ladder ends.
  [[nodiscard]] Buffer allocate(const Self& self, const AllocationRequest& request, StreamRef stream, bool must);
  void commit_slots(std::size_t bytes);
  [[nodiscard]] Buffer allocate_slot(const Self& self, std::size_t offset, const AllocationRequest& request,
                                     StreamRef stream);
  void release(std::uint32_t allocation, std::uint32_t share) noexcept;
  void record_use(std::uint32_t allocation, StreamRef stream);
  void last_use(std::uint32_t allocation, StreamRef stream, Ticket ticket);
  void retag(std::uint32_t allocation, Tag tag, const StreamRef* stream);
  [[nodiscard]] Buffer view(const Buffer& of, std::size_t offset, std::size_t bytes, std::string_view name);
  void mark_step(std::int64_t step);
  void mark_unit(int unit, const char* phase, const char* operation);
  [[nodiscard]] MemoryStatistics statistics() const;
  [[nodiscard]] MemoryPeak peak();
  void reset_peak();
  void check() const;
  /// Of what is live and what is mapped: everything that a failed call must leave as it was. (It may have learnt that
  /// frees are completed.)
  [[nodiscard]] std::uint64_t hash() const;

  // pointers.cpp
  [[nodiscard]] std::byte* detach(Buffer& buffer);
  void free(std::byte* pointer);
  [[nodiscard]] std::string stranger_text(const std::byte* pointer) const;
  void end() noexcept;  ///< The CachingAllocator is gone: frees what is detached; buffers keep their storage.
  void expect_running(const char* member) const;

  // allocate.cpp: the ladder.
  [[nodiscard]] BlockPool::Index place(Lock& lock, Attempt& attempt);
  [[nodiscard]] BlockPool::Index search(Attempt& attempt);
  [[nodiscard]] BlockPool::Index wait_for_block(Attempt& attempt);
  [[nodiscard]] BlockPool::Index claim(Attempt& attempt, const BlockPool::Run& run, Rung rung);
  /// One step up the ladder; false where it ends.
  [[nodiscard]] bool climb(Lock& lock, Attempt& attempt);
  void ask_callback(Lock& lock, Attempt& attempt);
  void expect_not_asked() const;
  void order_after(const BlockPool& pool, const BlockPool::Run& run, StreamRef stream);
  void order_after(const DependencySet& uses, StreamRef stream);
  void wait_on_host(Lock& lock, const DependencySet& uses);
  [[nodiscard]] Buffer hand_out(const Self& self, std::uint32_t index, std::byte* data) const;

  // growth.cpp: pages.
  [[nodiscard]] Arena& arena(Region region) noexcept { return arenas[static_cast<std::size_t>(region)]; }
  [[nodiscard]] const Arena& arena(Region region) const noexcept { return arenas[static_cast<std::size_t>(region)]; }
  [[nodiscard]] std::size_t headroom_bytes(const Attempt& attempt) const noexcept;
  [[nodiscard]] bool extend(Attempt& attempt, std::byte* at, std::size_t bytes);
  /// A block of new pages and of the run before them, if the region then has at most `ceiling` bytes reserved.
  [[nodiscard]] BlockPool::Index grow(Attempt& attempt, std::size_t ceiling, bool wait);
  [[nodiscard]] std::size_t missing_bytes(const Attempt& attempt) const noexcept;
  [[nodiscard]] std::size_t returnable_bytes(const Attempt& attempt) const noexcept;
  [[nodiscard]] bool fits_after_returning(const Attempt& attempt) const noexcept;
  /// Up to `bytes` of whole free pages that the host has seen the last use of go back from the other regions; false if
  /// there are none.
  [[nodiscard]] bool return_pages(Attempt& attempt, std::size_t bytes);
  [[nodiscard]] bool wait_for_pages(Lock& lock, Attempt& attempt, std::size_t bytes);
  [[nodiscard]] bool host_saw(const DependencySet& uses) const;
  /// Whole free pages at the region's end whose last use the host has seen.
  [[nodiscard]] std::size_t seen_bytes(Region region) const;
  void give_back(Region region, std::size_t bytes, StreamId stream);
  void restore(Attempt& attempt);
  void trim();
  void learn_step();

  // slots.cpp
  [[nodiscard]] bool extend_slots(Lock& lock, Attempt& attempt, std::size_t wanted);
  void forget_slots(Lock& lock);

  // refusal.cpp
  [[noreturn]] void refuse(const Attempt& attempt, const AllocationRequest& request, std::uint8_t flags = 0);
  void note_refusal(const Attempt& attempt, const AllocationRequest& request, std::uint8_t flags = 0);
  [[nodiscard]] std::string refusal_text(const Attempt& attempt, const AllocationRequest& request) const;

  // release.cpp
  [[nodiscard]] DependencySet marks_of(const Allocation& allocation);
  [[nodiscard]] Ticket mark_of(StreamId stream) noexcept;
  [[nodiscard]] Ticket reachable(StreamId stream, Ticket ticket);
  Ticket raise_ceiling(StreamId stream, Ticket ticket) noexcept;
  /// Logs the end of its free and forgets it; its block, if any, is the caller's matter.
  void finish_free(std::uint32_t allocation, std::int64_t now_ns);
  /// The uses of a pending allocation are ordered, or over (`uses` empty): its block is free again.
  void complete(std::uint32_t allocation, const DependencySet& uses);
  void end_frees(const BlockPool& pool, const BlockPool::Run& run);
  void sweep_pending(std::size_t limit);
  void link_pending(std::uint32_t allocation) noexcept;
  void unlink_pending(std::uint32_t allocation) noexcept;

  // allocator_state.cpp
  void expect_stream(StreamRef stream);
  /// True where work enqueued on `stream` from now on comes after all `uses`.
  [[nodiscard]] bool ordered(const DependencySet& uses, StreamId stream) const {
    const std::span<const StreamUse> known = uses.uses();
    if (known.size() == 1 && known[0].stream == stream) return true;
    return uses.empty() || ordered_after_others(uses, stream);
  }
  [[nodiscard]] bool ordered_after_others(const DependencySet& uses, StreamId stream) const;
  [[nodiscard]] bool comes_after(StreamId stream, StreamId producer, Ticket ticket) const;
  [[nodiscard]] std::uint32_t add_allocation(const AllocationRequest& request, std::size_t bytes, Tag tag,
                                             Region region, StreamRef stream);
  void begin_live(std::uint32_t index, Rung rung);  ///< Event and statistics of an allocation that has its place.
  [[nodiscard]] std::byte* address(const Allocation& allocation) const noexcept;
  [[nodiscard]] std::int64_t now() noexcept { return last_ns = std::max(last_ns, backend.now_ns()); }
  /// Appends an event to the log, for the caller to complete.
  AllocatorEvent& record(AllocatorEvent::Kind kind);
  AllocatorEvent& record(AllocatorEvent::Kind kind, const Allocation& allocation, std::int64_t now_ns);
  [[nodiscard]] std::uint8_t inside() const noexcept { return windows > 0 ? AllocatorEvent::kInside : 0; }
  void note_mapping(AllocatorEvent::Kind kind, Region region, std::byte* at, std::size_t bytes, StreamId stream);
  /// Logs what streams have been ordered after since the last call: entry points that decide by it begin so.
  void note_waits() {
    if (backend.waits().count() != waits_seen) log_waits();
  }
  void log_waits(std::uint8_t flags = 0);
  void log_uses(const Allocation& allocation, const DependencySet& uses, std::int64_t now_ns);
  void settle_peak() {
    if (peaks.wants_list()) list_peak();
  }
  void list_peak();  ///< Before anything is freed or renamed: takes the list of a new peak's blocks.

  // check.cpp
  void check_allocations() const;
  void check_blocks() const;
  void check_statistics() const;
  void check_detached() const;
  [[nodiscard]] bool came_after(const DependencySet& uses, StreamId stream) const;

  struct StreamRecord {
    Ticket ceiling = 0;                           ///< The highest ticket that any free has named.
    const std::atomic<Ticket>* issued = nullptr;  ///< Null: never named here.
  };
  /// The ticket that one stream was ordered after at a version of the waits. It never falls.
  struct Known {
    Ticket ticket = 0;
    std::uint64_t version = 0;
  };
  struct UnitMark {
    const char *phase, *operation;
    std::uint32_t name;
  };

  mutable std::mutex mutex;
  Device device;
  Backend& backend;
  std::size_t page_bytes, limit_bytes, capacity_bytes;  ///< `capacity_bytes`: of one region's addresses.
  std::array<Arena, kRegionCount> arenas;
  std::byte* slot_base = nullptr;
  std::size_t slot_committed_bytes = 0;
  SlotArea slots;
  RecordTable<Allocation> allocations;
  RecordTable<View> views;
  std::uint32_t pending_first = kNoIndex, pending_last = kNoIndex;  ///< Oldest first.
  std::uint32_t sweep_next = kNoIndex;
  std::vector<StreamRecord> streams;
  static constexpr StreamId kKnown = 16;  ///< Streams with a lower id have their order cached.
  mutable std::array<std::array<Known, kKnown>, kKnown> known_order{};
  std::unordered_map<const std::byte*, Detached> detached;
  std::vector<PressureCallback> callbacks;
  std::vector<std::thread::id> asking;  ///< Threads within a callback.
  int steps_marked = 0;
  std::size_t step_reserved = 0;  ///< The most that the transients reserved in the steps that are learned from.
  std::int64_t last_ns = 0;
  bool ended = false;
  std::uint64_t next_id = 0;
  EventLog log;
  MemoryStatistics stats;
  PeakRecorder peaks;
  std::vector<UnitMark> unit_marks;
  std::map<std::string, ExternalBytes> external;
  int windows = 0;                      ///< Calls that have let the mutex go: see Window.
  std::uint64_t waits_seen;             ///< Of backend.waits().
  std::vector<IssuedWait> fresh_waits;  ///< Scratch of note_waits().
  std::string refusal;
};

/// Within a call that holds the mutex: lets it go for its own lifetime, and logs that (host_wait, callback).
class Window {
 public:
  Window(AllocatorState& state, AllocatorState::Lock& lock, AllocatorEvent::Kind kind) : state_(state), lock_(lock) {
    state_.record(kind);
    ++state_.windows;
    lock_.unlock();
  }
  ~Window() {
    lock_.lock();
    --state_.windows;
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

 private:
  AllocatorState& state_;
  AllocatorState::Lock& lock_;
};

}  // namespace headroom::detail
