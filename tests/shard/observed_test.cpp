#include <headroom/parameters.hpp>
#include <headroom/trace.hpp>

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::ToyModel;
using test::ToyOptions;

/// Work that is not done before it is opened.
class Gate {
 public:
  void close_on(StreamRef stream) {
    Operation operation;
    operation.name = "gate";
    operation.host = [this] {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
    };
    stream.enqueue(std::move(operation));
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

ToyOptions twelve_units(Buffers buffers, std::optional<int> limit) {
  ToyOptions options{.units = 12};
  options.policy = backward_pre({.forward_prefetch = 1, .limit_all_gathers = limit, .limit_reduce_scatters = 2});
  options.parameters.buffers = buffers;
  return options;
}

/// Sets of one rank by the issue clock, over one step whose compute waits until all of it is issued, or does not.
int sets_peak(const ToyOptions& options, bool gated) {
  return test::on_ranks<int>(2, {}, [&](Job& job) {
    ToyModel model(job, options);
    Gate gate;
    model.params.prepare();
    if (gated) {
      gate.close_on(model.compute);
    }
    std::size_t visits = 0;
    model.step([&](Phase, int) {
      if (++visits == 2 * static_cast<std::size_t>(options.units)) {  // the last: all before it is issued
        gate.open();
      }
    });
    const int peak = model.params.parameter_sets_peak();
    model.params.finish();
    return peak;
  })[0];
}

TEST(ObservedBuffers, NoLimiterAndComputeBehind_SetsGrowWithTheUnits) {
  const int of_twelve = sets_peak(twelve_units(Buffers::observed, std::nullopt), true);
  EXPECT_GE(of_twelve, 8);
  ToyOptions six = twelve_units(Buffers::observed, std::nullopt);
  six.units = 6;
  EXPECT_LE(sets_peak(six, true), of_twelve - 6);
}

TEST(ObservedBuffers, LimitOfTwo_HoldsFourSetsAtMost) {
  EXPECT_LE(sets_peak(twelve_units(Buffers::observed, 2), false), 4);
  EXPECT_GE(sets_peak(twelve_units(Buffers::observed, 2), false), 2);
}

TEST(ObservedBuffers, PlannedBuffers_DoNotDependOnTheLimiterOrOnComputeBehind) {
  for (const std::optional<int> limit : {std::optional<int>(), std::optional<int>(2)}) {
    EXPECT_EQ(sets_peak(twelve_units(Buffers::planned, limit), true), 2);
    EXPECT_EQ(sets_peak(twelve_units(Buffers::planned, limit), false), 2);
  }
}

/// Limit 1: a gather allocates only where every release before it is over. The seeded executor runs nothing unasked.
TEST(ObservedBuffers, Limiter_WaitsForTheReleasesItNames) {
  run_ranks(2, {.executor = Executor::seeded, .seed = 3}, {.deadline = test::kDeadline}, [](Job& job) {
    ToyOptions options = twelve_units(Buffers::observed, 1);
    options.policy = prefetch_policy(BackwardPrefetch::none, {.limit_all_gathers = 1});
    ToyModel model(job, options);
    std::vector<Ticket> released;  // before each visit: after the release of the one before
    model.step([&](Phase, int) {
      released.push_back(model.compute.ref().issued());
      if (released.size() > 1) {
        EXPECT_TRUE(model.compute.ref().complete(released[released.size() - 2])) << "visit " << released.size();
      }
    });
    model.params.finish();
  });
}

TEST(ObservedBuffers, ReleasesThatWereSeen_GiveTheirBlocksBack) {
  for (const int micro_batches : {1, 3}) {
    run_ranks(2, {.executor = Executor::seeded, .seed = 3}, {.deadline = test::kDeadline}, [&](Job& job) {
      ToyOptions options = twelve_units(Buffers::observed, 2);
      options.width = 512;
      options.micro_batches = micro_batches;
      ToyModel model(job, options);
      const auto reserved = [&] { return model.memory.statistics().reserved_bytes.peak; };
      const auto sets = [&] {
        return model.memory.statistics().regions[static_cast<std::size_t>(Region::communication)].reserved_bytes.peak;
      };
      model.step();
      model.step();
      const std::size_t of_two_steps = reserved();
      for (int i = 0; i < 6; ++i) {
        model.step();
      }
      EXPECT_EQ(reserved(), of_two_steps) << "of eight steps, against two";
      // The reserve of one set and one gradient, and four sets; each a little over 1 MiB, in pages of 2 MiB.
      EXPECT_LE(sets(), 12U << 20);
      model.params.finish();
    });
  }
}

TEST(ObservedBuffers, Limiter_ItsWaitsAreInTheTrace) {
  // The seeded executor runs nothing before the host waits for it, so every release that is waited for was outstanding.
  run_ranks(2, {.executor = Executor::seeded, .seed = 3}, {.deadline = test::kDeadline}, [](Job& job) {
    job.device().trace().set_enabled(true);
    ToyModel model(job, twelve_units(Buffers::observed, 1));
    model.step();
    model.params.finish();
    const auto spans = job.device().trace().host_spans();
    EXPECT_GE(std::count_if(spans.begin(), spans.end(),
                            [](const HostSpan& span) { return span.cause == HostCause::throttle; }),
              12);
  });
}

/// The collectives themselves allocate in mid-step: refused at any of them, the rank drains in the reserve.
TEST(ObservedBuffers, AllocationRefusedAtAnyPoint_StepIsDroppedOnAllRanksAndRetriedExactly) {
  const ToyOptions options = [] {
    ToyOptions toy{.units = 5, .width = 256, .rows = 2};
    toy.policy = backward_pre({.forward_prefetch = 1, .limit_all_gathers = 2, .limit_reduce_scatters = 2});
    toy.parameters.buffers = Buffers::observed;
    return toy;
  }();
  const auto checksum = [&](int refuse_at) {
    return test::on_ranks<std::uint32_t>(2, {}, [&](Job& job) {
      ToyModel model(job, options, {.limit_bytes = 64U << 20});
      model.step();
      int visits = 0;
      std::vector<Buffer> hogs;
      const auto hog = [&](Phase, int) {
        if (++visits == refuse_at && job.rank() == 1) {
          for (std::size_t bytes = 8U << 20; bytes >= 4096; bytes /= 2) {
            while (auto buffer = model.memory.try_allocate({.bytes = bytes, .name = "hog"}, model.compute)) {
              hogs.push_back(std::move(*buffer));
            }
          }
        }
      };
      bool dropped = false;
      try {
        model.step(hog);
      } catch (const StepAborted& error) {
        EXPECT_EQ(error.rank(), 1);
        EXPECT_EQ(error.fault(), Fault::allocation);
        dropped = true;
      } catch (const OutOfMemory&) {
        EXPECT_EQ(job.rank(), 1);
        EXPECT_THROW(static_cast<void>(model.params.begin_step()), StepAborted);  // drained, without memory, and voted
        hogs.clear();
        dropped = true;
      }
      EXPECT_EQ(dropped, refuse_at > 0) << "at visit " << refuse_at;
      if (dropped) {
        model.step();
      }
      model.step();
      const std::uint32_t result = model.params.crc32c();
      model.params.finish();
      model.memory.check();
      return result;
    })[0];
  };
  const std::uint32_t expected = checksum(0);
  for (int at = 1; at <= 10; ++at) {
    EXPECT_EQ(checksum(at), expected) << "refused at visit " << at;
  }
}

}  // namespace
}  // namespace headroom
