// The allocator on the host, with events and statistics, beside glibc's malloc in the same run. An operation is one
// allocation or one free: items_per_second counts both, ns_per_op is the time of one. Counters: reserved_over_live at
// the peaks, which no allocator can bring below 1 page.
#include <headroom/allocator.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace headroom {
namespace {

AllocationRequest request(std::size_t bytes) {
  AllocationRequest result;
  result.bytes = bytes;
  result.category = Category::activation;
  result.name = "bench";
  return result;
}

struct Machine {
  Device device = Device::host();
  CachingAllocator memory{device};
  Stream stream{device};
};

void count(benchmark::State& state, std::int64_t operations) {
  state.SetItemsProcessed(operations);
  state.counters["ns_per_op"] = benchmark::Counter(static_cast<double>(operations) * 1e-9,
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void count(benchmark::State& state, std::int64_t operations, const CachingAllocator& memory) {
  count(state, operations);
  const MemoryStatistics statistics = memory.statistics();
  state.counters["reserved_over_live"] =
      static_cast<double>(statistics.reserved_bytes.peak) / static_cast<double>(statistics.allocated_bytes.peak);
  state.counters["waited"] = static_cast<double>(statistics.waited_reuse);
}

void pair(benchmark::State& state) {
  Machine machine;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto unused : state) {
    static_cast<void>(unused);
    benchmark::DoNotOptimize(machine.memory.allocate(request(bytes), machine.stream).data());
  }
  count(state, 2 * state.iterations(), machine.memory);
}
BENCHMARK(pair)->Arg(512)->Arg(1 << 20);

void pair_malloc(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto unused : state) {
    static_cast<void>(unused);
    void* const data = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc): what is compared
    benchmark::DoNotOptimize(data);
    std::free(data);  // NOLINT(cppcoreguidelines-no-malloc)
  }
  count(state, 2 * state.iterations());
}
BENCHMARK(pair_malloc)->Arg(512)->Arg(1 << 20);

/// As a forward and a backward pass: 1000 allocations, then their frees, last first.
void stack(benchmark::State& state) {
  constexpr std::int64_t kDepth = 1000;
  Machine machine;
  std::vector<Buffer> live;
  live.reserve(kDepth);
  for (auto unused : state) {
    static_cast<void>(unused);
    for (std::int64_t i = 0; i < kDepth; ++i) {
      live.push_back(machine.memory.allocate(request(static_cast<std::size_t>(1 + i % 7) << 12U), machine.stream));
    }
    while (!live.empty()) live.pop_back();
  }
  count(state, 2 * kDepth * state.iterations(), machine.memory);
}
BENCHMARK(stack);

/// Sizes of 512 bytes to 1 MiB, evenly in the logarithm; fixed, so that drawing them is not timed.
std::vector<std::size_t> drawn_sizes() {
  std::mt19937 random(7);
  std::vector<std::size_t> sizes(4096);
  for (std::size_t& bytes : sizes) bytes = std::size_t{512} << random() % 11U, bytes += random() % bytes;
  return sizes;
}

/// 1000 live buffers, of which a random one is replaced. With `streams` 2 every other one is of a second stream, and
/// the streams wait for each other once in 16 operations.
void random_sizes(benchmark::State& state) {
  const std::vector<std::size_t> sizes = drawn_sizes();
  Machine machine;
  const Stream second(machine.device);
  const std::array<StreamRef, 2> streams{machine.stream.ref(), second.ref()};
  const auto used = static_cast<std::size_t>(state.range(0));
  std::vector<Buffer> live(1000);
  for (std::size_t k = 0; k < live.size(); ++k) {
    live[k] = machine.memory.allocate(request(sizes[k * 7 % sizes.size()]), streams[k % used]);
  }
  std::size_t i = 0;
  std::uint32_t victim = 1;
  for (auto unused : state) {
    static_cast<void>(unused);
    const StreamRef stream = streams[i % used];
    victim = victim * 1664525U + 1013904223U;
    Buffer& buffer = live[(victim >> 8U) % live.size()];
    buffer.reset();
    buffer = machine.memory.allocate(request(sizes[i % sizes.size()]), stream);
    if (used > 1 && i % 16 == 0) {
      const StreamRef other = streams[(i / 16) % 2];
      (i / 16 % 2 == 0 ? streams[1] : streams[0]).wait(other, other.issued());
    }
    ++i;
  }
  count(state, 2 * state.iterations(), machine.memory);
}
BENCHMARK(random_sizes)->Arg(1)->Arg(2);

void random_sizes_malloc(benchmark::State& state) {
  const std::vector<std::size_t> sizes = drawn_sizes();
  std::vector<void*> live(1000, nullptr);
  std::size_t i = 0;
  std::uint32_t victim = 1;
  for (auto unused : state) {
    static_cast<void>(unused);
    victim = victim * 1664525U + 1013904223U;
    void*& buffer = live[(victim >> 8U) % live.size()];
    std::free(buffer);                              // NOLINT(cppcoreguidelines-no-malloc)
    buffer = std::malloc(sizes[i % sizes.size()]);  // NOLINT(cppcoreguidelines-no-malloc)
    benchmark::DoNotOptimize(buffer);
    ++i;
  }
  for (void* buffer : live) std::free(buffer);  // NOLINT(cppcoreguidelines-no-malloc)
  count(state, 2 * state.iterations());
}
BENCHMARK(random_sizes_malloc);

/// A gathered set that two streams use: a wait each way, and a last use that is named.
void slots(benchmark::State& state) {
  Machine machine;
  const Stream gather(machine.device);
  machine.memory.commit_slots(4U << 20U);
  AllocationRequest set = request(1U << 20U);
  set.category = Category::communication;
  set.region = Region::communication;
  std::size_t i = 0;
  for (auto unused : state) {
    static_cast<void>(unused);
    Buffer buffer = machine.memory.allocate_slot((i++ % 4) << 20U, set, gather);
    buffer.last_use(gather, 0);
    buffer.reset();
  }
  count(state, 2 * state.iterations());
}
BENCHMARK(slots);

/// One allocator, a stream a thread.
void threads(benchmark::State& state) {
  static Machine machine;
  const Stream stream(machine.device);
  for (auto unused : state) {
    static_cast<void>(unused);
    benchmark::DoNotOptimize(machine.memory.allocate(request(4096), stream).data());
  }
  count(state, 2 * state.iterations());
}
BENCHMARK(threads)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace headroom

BENCHMARK_MAIN();
