#include "random_program.hpp"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <thread>

namespace headroom::test {
namespace {

/// What scripts/soak_allocator.sh raises.
int from_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::stoi(text) : otherwise;
}

TEST(RandomProgram, ManySeeds_AgreeWithTheNaiveModel) {
  MemoryStatistics sum;
  int refusals = 0, slot_errors = 0;
  const auto first = static_cast<unsigned>(from_environment("HEADROOM_SOAK_FIRST_SEED", 1));
  const auto seeds = static_cast<unsigned>(from_environment("HEADROOM_SOAK_SEEDS", 10));
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.host_waits = true;
    options.operations = from_environment("HEADROOM_SOAK_OPERATIONS", 5000);
    options.streams = 2 + seed % 3;
    options.limit_pages = seed % 2 == 0 ? 100 : 400;
    RandomProgram program(options);
    program.run();
    if (testing::Test::HasFailure()) return;
    const MemoryStatistics s = program.statistics();
    sum.waited_reuse += s.waited_reuse;
    sum.host_waits += s.host_waits;
    sum.num_device_free += s.num_device_free;
    sum.pending_free_bytes.allocated += s.pending_free_bytes.allocated;
    refusals += program.refusals();
    slot_errors += program.slot_errors();
    for (std::size_t rung = 0; rung < sum.rungs.size(); ++rung) sum.rungs[rung] += s.rungs[rung];
  }
  for (const Rung rung : {Rung::ready, Rung::grown, Rung::waited, Rung::returned, Rung::host_waited}) {
    EXPECT_GT(sum.rungs[static_cast<std::size_t>(rung)], 20U) << "the programs hardly reach this rung";
  }
  EXPECT_GT(sum.pending_free_bytes.allocated, 0U);
  EXPECT_GT(refusals, 100);
  EXPECT_GT(slot_errors, 100);
}

TEST(RandomProgram, MoreStreamsThanADependencySetHolds_AgreesWithTheNaiveModel) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.operations = 3000;
    options.streams = 9;
    options.slot_pages = 0;  // a collapsed set is stricter than the model's
    RandomProgram program(options);
    program.run();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RandomProgram, SameSeedWithOtherTiming_GivesTheSameAddresses) {
  for (unsigned seed = 21; seed <= 23; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.operations = 3000;
    RandomProgram idle(options);
    options.finish_at_random = true;
    RandomProgram busy(options);
    EXPECT_EQ(idle.run(), busy.run());
  }
}

/// One thread asks; others record uses, look at parts, and free.
class Crew {
 public:
  Crew(CachingAllocator& memory, const std::vector<Stream>& streams) : memory_(memory), streams_(streams) {
    const AllocatorLayout layout = memory.layout();
    for (const std::uint64_t base : layout.region_base) lowest_ = std::min(lowest_, std::uintptr_t{base});
    owners_ = std::vector<std::atomic<int>>(2000);
  }

  void work(unsigned seed) {
    std::mt19937 random(seed);
    for (;;) {
      Buffer buffer;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (queue_.empty() && done_) return;
        if (!queue_.empty()) {
          buffer = std::move(queue_.front());
          queue_.pop_front();
        }
      }
      if (!buffer) {
        std::this_thread::yield();
        continue;
      }
      buffer.record_use(streams_[random() % streams_.size()]);
      if (random() % 3 == 0) buffer.view(0, buffer.bytes() / 2, "part").retag(Category::workspace);
      claim(buffer, 1, 0);
      if (random() % 4 == 0) {
        memory_.free(memory_.detach(std::move(buffer)));
      } else {
        buffer.reset();
      }
    }
  }
  void hand_over(Buffer buffer) {
    claim(buffer, 0, 1);
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(buffer));
  }
  void finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }

 private:
  /// Every granule of the buffer changes hands.
  void claim(const Buffer& buffer, int from, int to) {
    const std::size_t first = (reinterpret_cast<std::uintptr_t>(buffer.data()) - lowest_) / detail::kGranuleBytes;
    for (std::size_t i = 0; i < buffer.bytes(); i += detail::kGranuleBytes) {
      EXPECT_EQ(owners_.at(first + i / detail::kGranuleBytes).exchange(to), from) << "handed out twice";
    }
  }

  CachingAllocator& memory_;
  const std::vector<Stream>& streams_;
  std::uintptr_t lowest_ = UINTPTR_MAX;
  std::vector<std::atomic<int>> owners_;
  std::mutex mutex_;
  std::deque<Buffer> queue_;
  bool done_ = false;
};

TEST(RandomProgram, OneThreadIssuesWhileOthersUseAndFree_NoGranuleHasTwoOwners) {
  FakeDevice fake;
  CachingAllocator memory(fake.device, {.limit_bytes = 48 * FakeBackend::kPage, .event_capacity = 1000});
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.emplace_back(fake.device);
  Crew crew(memory, streams);
  std::vector<std::thread> workers;
  for (unsigned seed = 0; seed < 3; ++seed) workers.emplace_back([&crew, seed] { crew.work(seed); });
  std::mt19937 random(17);
  const int operations = from_environment("HEADROOM_SOAK_OPERATIONS", 4000);
  for (int i = 0; i < operations; ++i) {
    const AllocationRequest asked =
        request(1 + random() % 9000, Category::activation, "r", static_cast<Region>(random() % kRegionCount));
    const Stream& stream = streams[random() % streams.size()];
    if (random() % 8 == 0) {
      const StreamRef producer = streams[random() % streams.size()];
      stream.ref().wait(producer, producer.issued());
    }
    std::optional<Buffer> buffer = memory.try_allocate(asked, stream);
    if (buffer) crew.hand_over(std::move(*buffer));
    if (i % 64 == 0) memory.mark_step(i);
    if (i % 64 == 32) memory.trim();
    if (i % 16 == 0) memory.check();
  }
  crew.finish();
  for (std::thread& worker : workers) worker.join();
  memory.check();
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 0U);
}

}  // namespace
}  // namespace headroom::test
