#include <headroom/parameters.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "shard/toy_model.hpp"
#include "shard/world.hpp"

namespace headroom {
namespace {

using test::on_ranks;
using test::ToyModel;
using test::ToyOptions;

struct Outcome {
  std::uint32_t checksum = 0;
  double loss = 0, norm = 0;
  std::uint64_t checksums_compared = 0;
  TagBytes resting{};
};

Outcome train(Job& job, const ToyOptions& options, int steps) {
  ToyModel model(job, options);
  Outcome outcome;
  for (int i = 0; i < steps; ++i) {
    const StepReport report = model.step();
    outcome.loss = report.loss();
    outcome.norm = report.gradient_norm();
  }
  outcome.resting = model.memory.statistics().tag_bytes;
  outcome.checksums_compared = model.params.checksums_compared();
  outcome.checksum = model.params.crc32c();
  model.params.finish();
  model.memory.check();
  return outcome;
}

/// The outcome of all ranks, which must be one.
Outcome train_world(int world, const ToyOptions& options, const HostOptions& host = {}) {
  const auto outcomes = on_ranks<Outcome>(world, host, [&](Job& job) { return train(job, options, 4); });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.checksum, outcomes[0].checksum);
    EXPECT_EQ(outcome.loss, outcomes[0].loss);
    EXPECT_EQ(outcome.norm, outcomes[0].norm);
  }
  return outcomes[0];
}

void expect_close(const Outcome& found, const Outcome& expected, double tolerance) {
  EXPECT_NEAR(found.loss, expected.loss, tolerance * std::abs(expected.loss));
  EXPECT_NEAR(found.norm, expected.norm, tolerance * std::abs(expected.norm));
}

ToyOptions base(bool tied, int micro_batches) {
  ToyOptions options{.micro_batches = micro_batches, .tied = tied};
  options.policy = backward_pre({.forward_prefetch = 1, .limit_all_gathers = 2, .limit_reduce_scatters = 2});
  return options;
}

TEST(Strategy, WhatChangesOnlyOrderOrStorage_IsBitwiseFullShard) {
  for (const HostOptions host : {HostOptions{}, HostOptions{.executor = Executor::seeded, .seed = 5}}) {
    for (const bool tied : {false, true}) {
      for (const int world : {1, 3}) {
        const ToyOptions full = base(tied, 2);
        const Outcome expected = train_world(world, full, host);
        ToyOptions other = full;
        other.parameters.strategy = ShardStrategy::shard_grad_op;
        EXPECT_EQ(train_world(world, other, host).checksum, expected.checksum) << "shard_grad_op";
        other = full;
        other.parameters.buffers = Buffers::observed;
        EXPECT_EQ(train_world(world, other, host).checksum, expected.checksum) << "observed";
        other.policy = backward_pre({.forward_prefetch = 2});
        EXPECT_EQ(train_world(world, other, host).checksum, expected.checksum) << "observed without limits";
        other = full;
        other.groups.one_for_both = true;
        EXPECT_EQ(train_world(world, other, host).checksum, expected.checksum) << "one communicator";
        other = full;
        other.parameters.verify = true;
        const Outcome verified = train_world(world, other, host);
        EXPECT_EQ(verified.checksum, expected.checksum) << "verify";
        // 4 steps of 2 micro-batches of 4 units (one of them twice), forward and backward, a slice of each rank.
        const std::uint64_t visits = 4 * 2 * 2 * (tied ? 5 : 4);
        EXPECT_EQ(verified.checksums_compared, world == 1 ? 0 : visits * static_cast<std::uint64_t>(world));
      }
    }
  }
}

TEST(Strategy, WhatChangesRounding_StaysWithinIt) {
  for (const bool tied : {false, true}) {
    for (const int micro_batches : {1, 3}) {
      const Outcome expected = train_world(4, base(tied, micro_batches));
      for (const Accumulation accumulation : {Accumulation::sharded, Accumulation::full}) {
        for (const Buffers buffers : {Buffers::planned, Buffers::observed}) {
          SCOPED_TRACE(testing::Message()
                       << "tied " << tied << ", micro-batches " << micro_batches << ", full "
                       << (accumulation == Accumulation::full) << ", observed " << (buffers == Buffers::observed));
          ToyOptions options = base(tied, micro_batches);
          options.parameters.accumulation = accumulation;
          options.parameters.buffers = buffers;
          expect_close(train_world(4, options), expected, 1e-5);
          options.parameters.strategy = ShardStrategy::no_shard;
          options.groups.shard_ranks = 1;
          expect_close(train_world(4, options), expected, 1e-5);
          options.parameters.strategy = ShardStrategy::hybrid;
          options.groups.shard_ranks = 2;
          expect_close(train_world(4, options), expected, 1e-5);
        }
      }
    }
  }
}

TEST(Strategy, NarrowGathersAndReductions_StayNearAndMastersStayWide) {
  for (const auto strategy : {ShardStrategy::full_shard, ShardStrategy::no_shard, ShardStrategy::hybrid}) {
    for (const int micro_batches : {1, 2}) {
      ToyOptions options = base(true, micro_batches);
      const Outcome expected = train_world(4, options);
      options.parameters.strategy = strategy;
      options.groups.shard_ranks = strategy == ShardStrategy::no_shard ? 1 : strategy == ShardStrategy::hybrid ? 2 : 0;
      const Outcome wide = train_world(4, options);
      options.parameters.reduced = DType::bf16;
      options.parameters.gathered = strategy == ShardStrategy::no_shard ? DType::f32 : DType::bf16;
      const Outcome narrow = train_world(4, options);
      expect_close(narrow, expected, 1e-2);
      EXPECT_NE(narrow.checksum, wide.checksum) << "nothing was rounded";
      EXPECT_EQ(narrow.resting, wide.resting) << "what stays between steps is f32 either way";
      if (strategy == ShardStrategy::full_shard) {
        options.parameters.verify = true;
        EXPECT_EQ(train_world(4, options).checksum, narrow.checksum);
      }
    }
  }
}

TEST(Strategy, FrozenParameters_KeepTheirValuesAndCostNoGradientOrMoments) {
  for (const auto buffers : {Buffers::planned, Buffers::observed}) {
    for (const int world : {1, 2, 4}) {
      run_ranks(world, {}, {.deadline = test::kDeadline}, [&](Job& job) {
        ToyOptions options = base(true, 2);
        options.frozen_bias = true;
        options.parameters.buffers = buffers;
        options.parameters.verify = true;
        ToyModel model(job, options);
        for (int i = 0; i < 3; ++i) {
          model.step();
        }
        const FlatLayout& layout = model.params.layout(1);
        const auto group_bytes = static_cast<std::size_t>(layout.trainable.shard_numel) * sizeof(float);
        const FlatLayout& first = model.params.layout(0);
        const auto first_bytes = static_cast<std::size_t>(first.trainable.shard_numel) * sizeof(float);
        const auto rounded = [](std::size_t bytes) { return (bytes + 511) / 512 * 512; };
        const TagBytes bytes = model.memory.statistics().tag_bytes;
        const std::size_t expected = rounded(first_bytes) + 3 * rounded(group_bytes);
        EXPECT_EQ(bytes[static_cast<std::size_t>(Tag::gradient_shard)], expected);
        EXPECT_EQ(bytes[static_cast<std::size_t>(Tag::optimizer_state)], 2 * expected);
        for (int unit = 1; unit < 4; ++unit) {
          model.params.read(unit, [](int parameter, std::span<const float> values) {
            for (const float value : values) {
              ASSERT_TRUE(parameter == 0 || value == 0.1F) << value;
            }
          });
        }
        model.params.finish();
      });
    }
  }
}

/// Work of a step that was dropped may still be queued when its manager goes.
TEST(Strategy, ManagerGoesWhileItsChecksAreQueued_NothingIsReadAfterIt) {
  run_ranks(2, {.executor = Executor::seeded, .seed = 9}, {.deadline = test::kDeadline}, [](Job& job) {
    CachingAllocator memory(job.device());
    Stream compute(job.device());
    {
      ParameterManager params(job.communicators(), memory, compute, {.verify = true});
      params.add_unit("a", {{"w", {64, 64}, normal(1)}});
      StepTransaction step = params.begin_step();
      step.forward(0).finish();
    }
    compute.ref().synchronize();
  });
}

TEST(Strategy, GradientOfAFrozenParameter_IsRefusedByName) {
  run_ranks(1, {}, {}, [](Job& job) {
    ToyModel model(job, {.frozen_bias = true});
    StepTransaction step = model.params.begin_step();
    for (int unit = 0; unit < 4; ++unit) {
      step.forward(unit).finish();
    }
    UnitLease lease = step.backward(3);
    EXPECT_THROW(static_cast<void>(lease.gradient("bias")), InvalidInput);
    EXPECT_EQ(lease.gradient("weight").shape[0], 24);
  });
}

TEST(Strategy, GroupsThatDoNotFit_AreRefusedOnEveryRank) {
  const auto refused = [](ShardStrategy strategy, int shard_ranks, DType gathered, const char* says) {
    run_ranks(4, {}, {.deadline = test::kDeadline}, [&](Job& job) {
      CachingAllocator memory(job.device());
      Stream compute(job.device());
      try {
        const ParameterManager manager(job.communicators({.shard_ranks = shard_ranks}), memory, compute,
                                       {.strategy = strategy, .gathered = gathered});
        ADD_FAILURE() << "accepted where it should say: " << says;
      } catch (const InvalidInput& error) {
        EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      }
    });
  };
  refused(ShardStrategy::full_shard, 2, DType::f32, "groups of all ranks, found groups of 2");
  refused(ShardStrategy::no_shard, 0, DType::f32, "groups of 1 rank, found groups of 4");
  refused(ShardStrategy::hybrid, 1, DType::f32, "groups of 2 ranks or more, found groups of 1");
  refused(ShardStrategy::no_shard, 1, DType::bf16, "gathers nothing");
  refused(ShardStrategy::full_shard, 0, DType::i32, "expected f32 or bf16");
}

}  // namespace
}  // namespace headroom
