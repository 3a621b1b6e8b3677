// Operations that depend on another device's progress: `poll`, `pause` and host_wait.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/executors.hpp"
#include "runtime/core/backend.hpp"

namespace headroom::test {
namespace {

/// All of `size` parties must have arrived; nobody blocks in poll.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}

  Progress poll(bool& arrived) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!arrived) {
      arrived = true;
      ++count_;
      changed_.notify_all();
    }
    return count_ >= size_ ? Progress::done : Progress::blocked;
  }
  void pause(std::chrono::microseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, limit, [this] { return count_ >= size_; });
  }
  Operation party() {
    Operation operation;
    operation.name = "meeting";
    operation.poll = [this, arrived = false]() mutable { return poll(arrived); };
    operation.pause = [this](std::chrono::microseconds limit) { pause(limit); };
    return operation;
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class StreamCollective : public ::testing::TestWithParam<ExecutorCase> {
 protected:
  /// Runs `body(rank, device)` on one thread a rank, each with its own device.
  template <class Body>
  static void run_ranks(int ranks, const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&body, rank] {
        ExecutorCase executor = GetParam();
        executor.options.seed += static_cast<std::uint64_t>(rank);
        const Device device = make_device(executor);
        body(rank, device);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, StreamCollective, every_executor(), case_name);

TEST_P(StreamCollective, Poll_OnDevicesThatDependOnEachOther_Finishes) {
  constexpr int kRanks = 3;
  constexpr std::size_t kRounds = 30;
  std::vector<std::unique_ptr<Meeting>> gathers;
  std::vector<std::unique_ptr<Meeting>> reductions;
  for (std::size_t i = 0; i < kRounds; ++i) {
    gathers.push_back(std::make_unique<Meeting>(kRanks));
    reductions.push_back(std::make_unique<Meeting>(kRanks));
  }
  std::atomic<int> computed{0};
  run_ranks(kRanks, [&](int rank, const Device& device) {
    Stream compute(device);
    Stream gather(device, {StreamRole::gather, "gather"});
    Stream reduce(device, {StreamRole::reduce, "reduce"});
    for (std::size_t i = 0; i < kRounds; ++i) {
      compute.ref().wait(gather, gather.ref().enqueue(gathers[i]->party()));
      const Ticket done = compute.ref().enqueue(host_operation([&computed] { ++computed; }));
      reduce.ref().wait(compute, done);
      reduce.ref().enqueue(reductions[i]->party());
    }
    // Ranks wait for different streams first: each must also serve what its peers need.
    if (rank % 2 == 0) gather.ref().synchronize();
    reduce.ref().synchronize();
  });
  EXPECT_EQ(computed, kRanks * static_cast<int>(kRounds));
}

TEST_P(StreamCollective, Poll_OnUnorderedStreams_DoesNotStarveEither) {
  Meeting first(2);
  Meeting second(2);
  run_ranks(2, [&](int rank, const Device& device) {
    Stream a(device);
    Stream b(device);
    a.ref().enqueue(first.party());
    b.ref().enqueue(second.party());
    (rank == 0 ? a : b).ref().synchronize();
  });
}

TEST_P(StreamCollective, HostWait_ForAPeersStream_LetsOwnStreamsRun) {
  Meeting host(2);
  Meeting device_work(2);
  run_ranks(2, [&](int /*rank*/, const Device& device) {
    Stream stream(device);
    bool arrived = false;
    std::atomic<bool> met{false};
    stream.ref().enqueue(device_work.party());
    stream.ref().enqueue(host_operation([&met] { met = true; }));
    // Done only after this rank's stream ran, which needs the peer's stream, which needs the peer's host_wait.
    device.backend().host_wait({[&] { return met ? host.poll(arrived) : Progress::blocked; },
                                [&](std::chrono::microseconds limit) { host.pause(limit); }});
    EXPECT_TRUE(met);
  });
}

TEST_P(StreamCollective, HostWait_WithoutStreams_PollsUntilDone) {
  const Device device = make_device(GetParam());
  int polls = 0;
  device.backend().host_wait({[&polls] { return ++polls < 4 ? Progress::blocked : Progress::done; }, nullptr});
  EXPECT_EQ(polls, 4);
}

TEST_P(StreamCollective, HostWait_ThrowingPoll_Rethrows) {
  const Device device = make_device(GetParam());
  EXPECT_THROW(device.backend().host_wait({[]() -> Progress { throw std::runtime_error("deadline"); }, nullptr}),
               std::runtime_error);
}

TEST_P(StreamCollective, Pause_BetweenPolls_IsCalledOncePerBlockedPoll) {
  const Device device = make_device(GetParam());
  Stream stream(device);
  int polls = 0;
  int pauses = 0;
  Operation operation = poll_operation([&polls] { return ++polls < 4 ? Progress::blocked : Progress::done; });
  operation.pause = [&pauses](std::chrono::microseconds limit) {
    EXPECT_LE(limit, std::chrono::milliseconds(1));
    ++pauses;
  };
  stream.ref().enqueue(std::move(operation));
  stream.ref().synchronize();
  EXPECT_EQ(polls, 4);
  EXPECT_EQ(pauses, 3);
}

TEST_P(StreamCollective, Poll_WithoutPause_WaitsForProgress) {
  const Device device = make_device(GetParam());
  Stream blocked(device);
  Stream other(device);
  std::atomic<bool> open{false};
  blocked.ref().enqueue(poll_operation([&open] { return open ? Progress::done : Progress::blocked; }));
  other.ref().enqueue(host_operation([&open] { open = true; }));
  blocked.ref().synchronize();
  EXPECT_TRUE(open);
}

}  // namespace
}  // namespace headroom::test
