#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

AllocationRequest asked(std::size_t bytes, Region region = Region::transients) {
  AllocationRequest request;
  request.bytes = bytes;
  request.category = Category::workspace;
  request.name = "w";
  request.region = region;
  return request;
}

/// Enqueues work that fills the buffer and then finds what it wrote: another user of the bytes would be seen, by this
/// or by a race detector.
void fill_and_check(const Buffer& buffer, StreamRef stream, unsigned char value, int* faults) {
  unsigned char* const data = reinterpret_cast<unsigned char*>(buffer.data());
  const std::size_t bytes = buffer.bytes();
  Operation write;
  write.name = "write";
  write.host = [data, bytes, value] { std::memset(data, value, bytes); };
  stream.enqueue(std::move(write));
  Operation read;
  read.name = "read";
  read.host = [data, bytes, value, faults] {
    for (std::size_t i = 0; i < bytes; i += 61) *faults += data[i] == value ? 0 : 1;
  };
  stream.enqueue(std::move(read));
}

std::vector<HostOptions> executors() { return {{Executor::threads, 1}, {Executor::seeded, 1}, {Executor::seeded, 2}}; }

// One thread issues to several streams without ever ordering them: all order comes from the allocator.
TEST(HostDevice, ReuseAcrossStreams_UnderATightLimit_NeverSharesBytes) {
  for (const HostOptions& options : executors()) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(options.executor) << " seed " << options.seed);
    const Device device = Device::host(options);
    CachingAllocator memory(device, {.limit_bytes = std::size_t{6} << 20U});
    std::array<int, 3> faults{};
    {
      std::vector<Stream> streams;
      for (int i = 0; i < 3; ++i) streams.emplace_back(device);
      std::mt19937 random(7);
      std::vector<Buffer> live;
      for (int i = 0; i < 600; ++i) {
        const std::size_t s = random() % 3, t = random() % 3;
        std::optional<Buffer> buffer = memory.try_allocate(asked(1 + random() % 1'500'000), streams[s]);
        while (!live.empty() && (!buffer || random() % 2 == 0)) {
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
          if (!buffer) buffer = memory.try_allocate(asked(1 + random() % 1'500'000), streams[s]);
        }
        ASSERT_TRUE(buffer.has_value());
        fill_and_check(*buffer, streams[s], static_cast<unsigned char>(i), &faults[s]);
        if (t != s) {
          streams[t].ref().wait(streams[s], streams[s].ref().issued());
          buffer->record_use(streams[t]);
          fill_and_check(*buffer, streams[t], static_cast<unsigned char>(i + 1), &faults[t]);
        }
        live.push_back(std::move(*buffer));
      }
      live.clear();
    }
    memory.check();
    EXPECT_EQ(faults, (std::array<int, 3>{}));
    EXPECT_GT(memory.statistics().waited_reuse, 0U);
  }
}

TEST(HostDevice, ThreadsOfTheirOwnStream_ShareOneAllocator) {
  const Device device = Device::host();
  CachingAllocator memory(device, {.limit_bytes = std::size_t{64} << 20U});
  std::array<int, 4> faults{};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, &device, &faults, t] {
      const Stream stream(device);
      std::mt19937 random(t);
      std::vector<Buffer> live;
      for (int i = 0; i < 400; ++i) {
        std::optional<Buffer> buffer =
            memory.try_allocate(asked(random() % 60'000, static_cast<Region>(random() % 3)), stream);
        if (buffer && buffer->bytes() > 0) {
          fill_and_check(*buffer, stream, static_cast<unsigned char>(t * 64 + random() % 64), &faults[t]);
          live.push_back(buffer->view(0, buffer->bytes(), "v"));
          live.push_back(std::move(*buffer));
        }
        while (live.size() > 20) live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
        if (i % 50 == 0) {
          memory.check();
          static_cast<void>(memory.statistics());
          static_cast<void>(memory.peak());
          static_cast<void>(memory.events());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  memory.check();
  EXPECT_EQ(faults, (std::array<int, 4>{}));
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 0U);
}

// Freeing from the work itself: a worker holds the last share.
TEST(HostDevice, BuffersFreedByWorkers_WhileTheIssuerWaitsForThem_AreFound) {
  for (const HostOptions& options : executors()) {
    const Device device = Device::host(options);
    CachingAllocator memory(device, {.limit_bytes = std::size_t{4} << 20U});
    const Stream stream(device), other(device);
    auto held = std::make_shared<Buffer>(memory.allocate(asked(std::size_t{2} << 20U), stream));
    Operation drop;
    drop.name = "drop";
    drop.host = [held] { held->reset(); };
    held.reset();
    other.ref().enqueue(std::move(drop));
    Buffer pending = memory.allocate(asked(std::size_t{2} << 20U), stream);
    pending.record_use(other);
    pending.reset();
    other.ref().synchronize();
    EXPECT_TRUE(memory.try_allocate(asked(std::size_t{4} << 20U), stream).has_value());
    memory.check();
  }
}

TEST(HostDevice, ErrorOfAWaitedStream_ReachesTheCallerAndLosesNothing) {
  const Device device = Device::host();
  CachingAllocator memory(device, {.limit_bytes = std::size_t{4} << 20U});
  const Stream stream(device), user(device);
  Buffer a = memory.allocate(asked(std::size_t{2} << 20U), stream), b = memory.allocate(asked(2U << 20U), stream);
  Operation fails;
  fails.name = "fails";
  fails.host = [] { throw std::runtime_error("broken kernel"); };
  user.ref().enqueue(std::move(fails));
  for (Buffer* buffer : {&a, &b}) {
    buffer->record_use(user);
    buffer->reset();
  }
  EXPECT_THROW(static_cast<void>(memory.allocate(asked(std::size_t{4} << 20U, Region::residents), stream)),
               std::runtime_error);
  memory.check();
  EXPECT_TRUE(memory.try_allocate(asked(std::size_t{4} << 20U, Region::residents), stream).has_value());
  memory.check();
}

TEST(HostDevice, AllocatorGoneBeforeTheWork_KeepsThePagesUntilItIsDone) {
  for (const HostOptions& options : executors()) {
    const Device device = Device::host(options);
    const Stream stream(device);
    int faults = 0;
    {
      CachingAllocator memory(device, {.limit_bytes = std::size_t{16} << 20U});
      const Buffer a = memory.allocate(asked(std::size_t{8} << 20U), stream);
      for (int i = 0; i < 5; ++i) fill_and_check(a, stream, static_cast<unsigned char>(i), &faults);
    }
    stream.ref().synchronize();
    EXPECT_EQ(faults, 0);
  }
}

}  // namespace
}  // namespace headroom::test
