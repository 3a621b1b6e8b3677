#pragma once

#include <headroom/recording.hpp>

#include "data/token_data.hpp"
#include "run/run.hpp"
#include "workloads/workload.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace headroom::bench {

/// Takes an allocator's events before its log drops them.
class EventTaker {
 public:
  explicit EventTaker(Recording& into) : into_(into) {}
  void take(const CachingAllocator& memory) {
    const std::vector<AllocatorEvent> more = memory.events(into_.events.size());
    EXPECT_LE(memory.dropped_events(), into_.events.size()) << "the log is too short for this test";
    into_.events.insert(into_.events.end(), more.begin(), more.end());
  }
  /// Everything that a replay needs besides.
  void finish(const CachingAllocator& memory) {
    take(memory);
    into_.info = recording_info(memory);
    into_.names = memory.names();
    into_.statistics = named_statistics(memory.statistics());
  }

 private:
  Recording& into_;
};

/// Another workload, each of whose steps has windows of another length: the first tokens of those that it is given.
class VaryingLengths final : public Workload {
 public:
  explicit VaryingLengths(std::unique_ptr<Workload> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::vector<UnitSpec> units() const override { return inner_->units(); }
  [[nodiscard]] std::vector<PathSpec> paths() const override { return inner_->paths(); }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    constexpr std::int64_t kUnit = 32;
    const std::int64_t most = batch.shape.sequence / kUnit;
    MicroBatch shorter = batch;
    shorter.shape.sequence = kUnit * std::uniform_int_distribution<std::int64_t>((most + 1) / 2, most)(random_);
    shorter.tokens.shape[0] = shorter.targets.shape[0] = shorter.shape.tokens();
    inner_->run(step, shorter, tensors);
  }
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override {
    return inner_->model_flops_per_token(sequence);
  }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return inner_->gemm_calls(shape);
  }

 private:
  std::unique_ptr<Workload> inner_;
  std::mt19937_64 random_{7};  // alike on all ranks
};

/// Rank 0's recording of the steps of a run.
inline Recording record_run(const Config& config, bool varies = false) {
  Recording recording;
  const TokenData data = TokenData::load(data_options(config));
  run_ranks(config.ranks, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    Recording other;
    EventTaker taker(job.rank() == 0 ? recording : other);
    std::unique_ptr<Workload> workload = make_workload(config);
    if (varies) workload = std::make_unique<VaryingLengths>(std::move(workload));
    Run run(config, job, data, std::move(workload), {.keep_trace = true, .replay_gemms = false});
    while (run.next()) taker.take(run.memory());
    taker.finish(run.memory());
    static_cast<void>(run.finish());
  });
  return recording;
}

}  // namespace headroom::bench
