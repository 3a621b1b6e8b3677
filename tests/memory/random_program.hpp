#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <unordered_map>

#include "equal_memory.hpp"
#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "headroom/timeline.hpp"
#include "logged_blocks.hpp"
#include "random_request.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {

/// A random program on an allocator, and beside it the naive model: who owns each granule, or who used it last. After
/// each operation everything that the allocator says is compared with the model, and its events are folded.
class RandomProgram {
 public:
  explicit RandomProgram(const ProgramOptions& options)
      : options_(options),
        memory_(fake_.device,
                {.limit_bytes = options.limit_pages * FakeBackend::kPage, .event_capacity = options.event_capacity}),
        state_(detail::AllocatorState::of(memory_)),
        random_(options.seed),
        timing_(options.seed + 1000) {
    for (std::size_t i = 0; i < options.streams; ++i) streams_.emplace_back(fake_.device);
    if (options.slot_pages > 0) memory_.commit_slots(options.slot_pages * FakeBackend::kPage);
    compare();
  }

  /// Addresses in the order in which they were given out.
  std::vector<std::uintptr_t> run() {
    for (int i = 0; i < options_.operations && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "seed " << options_.seed << ", operation " << i);
      step();
      compare();
      if (options_.finish_at_random && timing_() % 3 == 0) fake_.backend->finish(any_stream(timing_).ref().id());
    }
    while (!live_.empty()) free(live_.size() - 1);
    compare();
    EXPECT_EQ(memory_.statistics().allocated_bytes.current, 0U);
    return addresses_;
  }
  [[nodiscard]] MemoryStatistics statistics() const { return memory_.statistics(); }
  [[nodiscard]] const CachingAllocator& memory() const { return memory_; }
  [[nodiscard]] int refusals() const { return refusals_; }
  [[nodiscard]] int slot_errors() const { return slot_errors_; }

 private:
  static constexpr std::size_t kGranule = detail::kGranuleBytes;
  using Uses = std::map<StreamId, Ticket>;  // ticket 0: until the free, unless a last use is named
  struct Live {
    std::vector<Buffer> shares;
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Uses uses;
    StreamId stream = 0;
    Tag tag = Tag::other;
  };
  struct Granule {
    bool live = false;
    Uses last_uses;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }
  const Stream& any_stream(std::mt19937& random) { return streams_[random() % streams_.size()]; }

  void step() {
    const std::size_t choice = pick(100);
    if (choice < 32) return allocate();
    if (choice < 38) return allocate_slot();
    if (choice < 42) return wait();
    if (choice < 44) return static_cast<void>(any_stream(random_).ref().enqueue({}));
    if (choice == 44 && options_.host_waits) return any_stream(random_).ref().synchronize();
    if (choice == 45 && options_.host_waits) return memory_.trim();
    if (choice == 46) return memory_.mark_step(static_cast<std::int64_t>(pick(100)));
    if (choice == 47) return memory_.mark_unit(3, "forward", "compute");
    if (choice == 48) return memory_.reset_peak();
    if (live_.empty()) return;
    const std::size_t index = pick(live_.size());
    if (choice < 56) return record_use(live_[index]);
    if (choice < 60) return last_use(live_[index]);
    if (choice < 66) return view(live_[index]);
    if (choice < 70) return retag(live_[index]);
    if (choice < 75) return drop_share(index);
    free(index);
  }

  void allocate() {
    const AllocationRequest asked = any_request(random_);
    const Stream& stream = any_stream(random_);
    const std::uint64_t before = state_.hash();
    try {
      begin(memory_.allocate(asked, stream), asked, stream, false);
    } catch (const OutOfMemory& error) {
      ++refusals_;
      ASSERT_EQ(state_.hash(), before) << error.what();
      ASSERT_FALSE(could_fit(asked)) << error.what();
    }
  }

  void begin(Buffer buffer, const AllocationRequest& asked, const Stream& stream, bool slot) {
    Live live;
    live.address = reinterpret_cast<std::uintptr_t>(buffer.data());
    live.bytes = (asked.bytes + kGranule - 1) / kGranule * kGranule;
    live.stream = stream.ref().id();
    live.uses[live.stream] = 0;
    live.tag = tag_of(asked.category, asked.state);
    addresses_.push_back(live.address);
    ASSERT_EQ(buffer.bytes(), asked.bytes);
    for (std::size_t at = 0; at < live.bytes; at += kGranule) {
      Granule& granule = granules_[live.address + at];
      ASSERT_FALSE(granule.live) << "handed out twice";
      ASSERT_TRUE(may_use(granule, live.stream, !slot)) << "handed out before its last use is ordered";
      granule.live = true;
    }
    live.shares.push_back(std::move(buffer));
    live_.push_back(std::move(live));
  }

  /// `waited`: that the host has seen the end of a use counts too.
  [[nodiscard]] bool may_use(const Granule& granule, StreamId stream, bool waited) const {
    for (const auto& [user, ticket] : granule.last_uses) {
      if (user == stream || fake_.backend->knows(stream, user) >= ticket) continue;
      if (!waited || !fake_.backend->complete(user, ticket)) return false;
    }
    return true;
  }

  void allocate_slot() {
    if (options_.slot_pages == 0) return;
    AllocationRequest asked = request(1 + pick(9000), Category::communication, "slot");
    const std::size_t area = options_.slot_pages * FakeBackend::kPage;
    const std::size_t bytes = (asked.bytes + kGranule - 1) / kGranule * kGranule;
    const std::size_t offset = pick((area - bytes) / kGranule + 1) * kGranule;
    const Stream& stream = any_stream(random_);
    bool allowed = true;
    for (std::size_t at = 0; at < bytes; at += kGranule) {
      const Granule& granule = granules_[reinterpret_cast<std::uintptr_t>(state_.slot_base) + offset + at];
      allowed = allowed && !granule.live && may_use(granule, stream.ref().id(), false);
    }
    const std::uint64_t before = state_.hash();
    try {
      begin(memory_.allocate_slot(offset, asked, stream), asked, stream, true);
      ASSERT_TRUE(allowed);
    } catch (const std::logic_error& error) {
      ++slot_errors_;
      ASSERT_FALSE(allowed) << error.what();
      ASSERT_EQ(state_.hash(), before) << error.what();
    }
  }

  void wait() {
    const StreamRef producer = any_stream(random_);
    any_stream(random_).ref().wait(producer, pick(4) == 0 ? producer.issued() / 2 : producer.issued());
  }

  void record_use(Live& live) {
    const StreamRef stream = any_stream(random_);
    live.shares[pick(live.shares.size())].record_use(stream);
    live.uses[stream.id()] = std::numeric_limits<Ticket>::max();
  }

  void last_use(Live& live) {
    const StreamRef stream = any_stream(random_);
    const Ticket ticket = stream.issued();
    live.shares[0].last_use(stream, ticket);
    if (ticket == 0) return;
    Ticket& known = live.uses[stream.id()];
    known = std::max(known, ticket);
  }

  void view(Live& live) {
    const Buffer& base = live.shares[pick(live.shares.size())];
    if (live.shares.size() > 5) return;
    const std::size_t offset = pick(base.bytes() + 1);
    const std::size_t bytes = pick(base.bytes() - offset + 1);
    const auto is_equal = [at = base.data() + offset, bytes](const Buffer& share) {
      return share.data() == at && share.bytes() == bytes;
    };
    if (std::ranges::any_of(live.shares, is_equal)) return;  // a log does not tell which of two equal views went
    live.shares.push_back(base.view(offset, bytes, "view"));
  }

  void retag(Live& live) {
    constexpr std::array kStates{UseState::gathering, UseState::next, UseState::current, UseState::retained};
    const UseState state = kStates[pick(kStates.size())];
    live.shares[0].retag(Category::parameter_full, state);
    live.tag = tag_of(Category::parameter_full, state);
  }

  void drop_share(std::size_t index) {
    Live& live = live_[index];
    if (live.shares.size() == 1) return free(index);
    live.shares.erase(live.shares.begin() + static_cast<std::ptrdiff_t>(pick(live.shares.size())));
  }

  void free(std::size_t index) {
    std::swap(live_[index], live_.back());
    Live live = std::move(live_.back());
    live_.pop_back();
    end(live.shares);
    for (auto& [stream, ticket] : live.uses) {
      const bool named = ticket != 0 && ticket != std::numeric_limits<Ticket>::max();
      if (!named) ticket = fake_.backend->issued(stream);
    }
    for (std::size_t at = 0; at < live.bytes; at += kGranule) granules_[live.address + at] = {false, live.uses};
  }

  /// Now and then as a plain pointer, which cannot be freed twice.
  void end(std::vector<Buffer>& shares) {
    if (shares.size() > 1 || shares[0].bytes() == 0 || pick(6) != 0) return shares.clear();
    std::byte* pointer = nullptr;
    try {
      pointer = memory_.detach(std::move(shares[0]));
    } catch (const std::logic_error&) {  // a view that outlived its base
      return shares.clear();
    }
    memory_.free(pointer);
    const std::uint64_t before = state_.hash();
    ASSERT_THROW(memory_.free(pointer), std::logic_error);
    ASSERT_EQ(state_.hash(), before);
  }

  /// Whether the request would fit if all frees were over and all free pages were returned.
  [[nodiscard]] bool could_fit(const AllocationRequest& asked) {
    const std::size_t bytes = (asked.bytes + kGranule - 1) / kGranule * kGranule;
    std::size_t longest = 0, last_here = 0, returnable = 0;
    for (std::size_t r = 0; r < kRegionCount; ++r) {
      const auto base = reinterpret_cast<std::uintptr_t>(state_.arenas[r].base);
      std::size_t run = 0, longest_here = 0;
      for (std::size_t at = 0; at < state_.arenas[r].pool.end(); at += kGranule) {
        run = granules_[base + at].live ? 0 : run + kGranule;
        longest_here = std::max(longest_here, run);
      }
      if (static_cast<Region>(r) == asked.region) {
        longest = longest_here;
        last_here = run;
      } else {
        returnable += run / FakeBackend::kPage * FakeBackend::kPage;
      }
    }
    const std::size_t headroom =
        options_.limit_pages * FakeBackend::kPage - memory_.statistics().reserved_bytes.current + returnable;
    return longest >= bytes || last_here + headroom >= bytes;
  }

  void compare() {
    ASSERT_NO_THROW(memory_.check());
    for (const AllocatorEvent& event : state_.log.since(folded_)) {
      const MemoryInstant& now = timeline_.apply(event);
      logged_.apply(event);
      std::size_t sum = 0;
      for (const std::size_t bytes : now.statistics.tag_bytes) sum += bytes;
      ASSERT_EQ(sum, now.allocated_bytes()) << "event " << event.number;
      ASSERT_LE(now.statistics.active_bytes.current, now.reserved_bytes()) << "event " << event.number;
      ASSERT_LE(now.union_bytes, now.share_bytes) << "event " << event.number;
      ASSERT_LE(now.union_bytes, now.statistics.requested_bytes.current) << "event " << event.number;
      ++folded_;
    }
    const MemoryStatistics s = memory_.statistics();
    expect_equal(timeline_.now().statistics, s);
    ASSERT_EQ(fake_.backend->committed.size() * FakeBackend::kPage, s.reserved_bytes.current);
    TagBytes tags{};
    for (const Live& live : live_) tags[static_cast<std::size_t>(live.tag)] += live.bytes;
    ASSERT_EQ(tags, s.tag_bytes);
    ASSERT_EQ(s.allocation.current, live_.size());
    compare_peak(s);
  }

  void compare_peak(const MemoryStatistics& s) {
    if (pick(16) != 0) return;
    logged_.expect_those_of(state_);
    const MemoryPeak peak = memory_.peak();
    expect_equal(timeline_.peak(memory_.names()), peak);
    std::size_t own = 0, tagged = 0;
    for (const LiveBlock& block : peak.blocks) own += block.shared ? 0 : block.bytes;
    for (const std::size_t bytes : peak.tag_bytes) tagged += bytes;
    ASSERT_EQ(peak.allocated_bytes, s.allocated_bytes.peak);
    ASSERT_EQ(own, peak.allocated_bytes);
    ASSERT_EQ(tagged, peak.allocated_bytes);
  }

  ProgramOptions options_;
  FakeDevice fake_;
  CachingAllocator memory_;
  detail::AllocatorState& state_;
  std::mt19937 random_, timing_;
  std::vector<Stream> streams_;
  std::vector<Live> live_;
  std::unordered_map<std::uintptr_t, Granule> granules_;
  std::vector<std::uintptr_t> addresses_;
  Timeline timeline_;
  LoggedBlocks logged_;
  std::uint64_t folded_ = 0;
  int refusals_ = 0, slot_errors_ = 0;
};

}  // namespace headroom::test
