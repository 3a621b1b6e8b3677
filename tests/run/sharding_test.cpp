// The same training, sharded, wrapped, rounded or recomputed in another way.
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

namespace headroom::bench {
namespace {

std::vector<Setting> joined(std::vector<Setting> settings, const std::vector<Setting>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void expect_near(const std::vector<StepRecord>& steps, const std::vector<StepRecord>& expected, double tolerance) {
  ASSERT_EQ(steps.size(), expected.size());
  for (std::size_t step = 0; step < steps.size(); ++step) {
    EXPECT_NEAR(steps[step].loss, expected[step].loss, tolerance * expected[step].loss) << "step " << step;
  }
}

constexpr double kBf16 = 1e-2;

struct OtherWay {
  const char* name;
  std::vector<Setting> settings;
  double tolerance = 2e-5;
};

class RunOtherwise : public testing::TestWithParam<OtherWay> {};

/// One batch of 24 samples a step, whatever the ranks.
std::vector<SmallResult> run_of(int ranks, const std::vector<Setting>& more) {
  return run_small(small_config(joined({{"ranks", std::to_string(ranks)},
                                        {"micro-batch", std::to_string(12 / ranks)},
                                        {"accumulate", "2"},
                                        {"layers", "3"}},
                                       more)));
}

TEST_P(RunOtherwise, TwoAndFourRanks_TrainLikeOneRank) {
  const std::vector<SmallResult> alone = run_of(1, {});
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const std::vector<SmallResult> results = run_of(ranks, GetParam().settings);
    expect_near(results.front().steps, alone.front().steps, GetParam().tolerance);
    for (const SmallResult& rank : results) EXPECT_EQ(rank.crc32c, results.front().crc32c);
    if (GetParam().tolerance == kBf16) {
      EXPECT_GT(std::abs(results.front().steps.back().loss / alone.front().steps.back().loss - 1), 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, RunOtherwise,
    testing::Values(
        OtherWay{"shard_grad_op", {{"shard", "shard_grad_op"}}}, OtherWay{"no_shard", {{"shard", "no_shard"}}},
        OtherWay{"hybrid", {{"shard", "hybrid(2)"}}}, OtherWay{"full_accumulation", {{"accumulation", "full"}}},
        OtherWay{"no_shard_full", {{"shard", "no_shard"}, {"accumulation", "full"}}},
        OtherWay{"hybrid_full_observed", {{"shard", "hybrid(2)"}, {"accumulation", "full"}, {"buffers", "observed"}}},
        OtherWay{"bf16", {{"gathered", "bf16"}, {"reduced", "bf16"}}, kBf16},
        OtherWay{"bf16_recompute", {{"gathered", "bf16"}, {"recompute", "unit"}}, kBf16},
        OtherWay{"bf16_no_shard", {{"reduced", "bf16"}, {"shard", "no_shard"}}, kBf16},
        OtherWay{"bf16_hybrid", {{"gathered", "bf16"}, {"reduced", "bf16"}, {"shard", "hybrid(2)"}}, kBf16}),
    [](const testing::TestParamInfo<OtherWay>& way) { return std::string(way.param.name); });

/// From one set of parameters, which the export of another wrap left.
TEST(Run, AnyWrap_TrainsLikeBlocks) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / std::string("headroom_any_wrap_").append(std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string init = folder.string();
  static_cast<void>(run_of(2, {{"steps", "1"}, {"wrap", "half"}, {"export", init}}));
  const std::vector<SmallResult> blocks = run_of(2, {{"init", init}});
  for (const std::vector<Setting>& wrap :
       {std::vector<Setting>{{"wrap", "half"}}, std::vector<Setting>{{"wrap", "2"}},
        std::vector<Setting>{{"wrap", "3"}, {"recompute", "unit"}}, std::vector<Setting>{{"wrap", "1"}}}) {
    SCOPED_TRACE(wrap.front().value);
    const std::vector<SmallResult> other = run_of(2, joined({{"init", init}}, wrap));
    expect_near(other.front().steps, blocks.front().steps, 2e-5);
    if (wrap.front().value == "1") {
      EXPECT_EQ(other.front().crc32c, blocks.front().crc32c);
    }
  }
  std::filesystem::remove_all(folder);
}

/// Bits that bf16 cannot hold survive in the parameters: the masters are f32, whatever is gathered.
TEST(Run, GatheredInBf16_KeepsMastersInF32) {
  const Config config = small_config({{"ranks", "2"}, {"gathered", "bf16"}, {"steps", "2"}});
  const TokenData data = TokenData::load(data_options(config));
  run_ranks(2, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    bench::Run run(config, job, data, make_workload(config));
    while (run.next()) {
    }
    std::int64_t with_low_bits = 0;
    run.parameters().read(0, [&](int index, std::span<const float> values) {
      if (index != 0) return;
      for (const float value : values) with_low_bits += (std::bit_cast<std::uint32_t>(value) & 0xFFFFU) != 0 ? 1 : 0;
    });
    EXPECT_GT(with_low_bits, 128 * 16 / 2);
    static_cast<void>(run.finish());
  });
}

/// What one rank's steps did with its activations and its device.
struct Activity {
  std::size_t activation_bytes_peak = 0;
  std::map<std::string, int> operations;  ///< Of the compute stream, by name, a step.
  double gemm_flops = 0;
  std::uint32_t crc32c = 0;
};

std::size_t peak_of(Tag tag, const std::vector<AllocatorEvent>& events) {
  std::map<std::uint64_t, std::size_t> live;
  std::size_t bytes = 0;
  std::size_t peak = 0;
  for (const AllocatorEvent& event : events) {
    if (event.kind == AllocatorEvent::Kind::alloc && event.tag == tag) {
      live[event.allocation] = event.requested_bytes;
      peak = std::max(peak, bytes += event.requested_bytes);
    } else if (event.kind == AllocatorEvent::Kind::free_requested && live.count(event.allocation) > 0) {
      bytes -= live[event.allocation];
      live.erase(event.allocation);
    }
  }
  return peak;
}

Activity activity_of(const std::vector<Setting>& settings) {
  const Config config = small_config(joined({{"layers", "4"}, {"steps", "2"}, {"ranks", "2"}}, settings));
  const TokenData data = TokenData::load(data_options(config));
  std::vector<Activity> activities(2);
  run_ranks(2, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    Activity& mine = activities[static_cast<std::size_t>(job.rank())];
    bench::Run run(config, job, data, make_workload(config), {.keep_trace = true, .replay_gemms = false});
    while (run.next()) {
    }
    EXPECT_EQ(run.memory().dropped_events(), 0U);
    mine.activation_bytes_peak = peak_of(Tag::activation, run.memory().events());
    for (const OperationRecord& record : run.device().trace().operations()) {
      if (record.kind == OperationRecord::Kind::work) ++mine.operations[record.name];
    }
    for (const GemmCall& call : run.workload().gemm_calls({config.micro_batch, config.seq})) {
      mine.gemm_flops += call.flops();
    }
    static_cast<void>(run.finish());
    mine.crc32c = run.crc32c();
  });
  EXPECT_EQ(activities[0].activation_bytes_peak, activities[1].activation_bytes_peak);
  return activities[0];
}

/// Floats a row: a block keeps 10 C + H (inputs, q k v, attention's output and log-sum-exp, the MLP's hidden layer); at
/// the peak, the last MLP's backward, there are the gradient that flows and two hidden layers, 9 C, beside them.
TEST(Recompute, OfUnits_KeepsInputsOnlyAndCostsAtMostOneForward) {
  constexpr std::size_t kLayers = 4;
  constexpr std::size_t kWidth = 16;
  constexpr std::size_t kBlock = 10 * kWidth + 2;
  constexpr std::size_t kTransient = 9 * kWidth;
  constexpr std::size_t kRowBytes = 2 * 12 * sizeof(float);
  constexpr double kForwardFlops = 2.0 * 24 * kLayers * 12 * kWidth * kWidth;
  constexpr int kSteps = 2;
  const Activity all = activity_of({});
  EXPECT_EQ(all.activation_bytes_peak, kRowBytes * (kLayers * kBlock + kTransient));

  struct Case {
    const char* wrap;
    std::size_t floats_a_row;  ///< The inputs of all other units, one unit's activations, and what flows.
    int units;
    int inner_mlps;  ///< Whose output their own unit needs.
  };
  for (const Case& unit : {Case{"block", (kLayers - 1) * kWidth + kBlock + kTransient, 4, 0},
                           Case{"2", (kLayers / 2 - 1) * kWidth + 2 * kBlock + kTransient, 2, 2},
                           Case{"half", (2 * kLayers - 1) * kWidth + 5 * kWidth + kTransient, 8, 0}}) {
    SCOPED_TRACE(unit.wrap);
    const Activity plain = activity_of({{"wrap", unit.wrap}});
    const Activity recomputed = activity_of({{"wrap", unit.wrap}, {"recompute", "unit"}});
    EXPECT_EQ(recomputed.crc32c, plain.crc32c);
    EXPECT_EQ(plain.activation_bytes_peak, all.activation_bytes_peak);
    EXPECT_EQ(recomputed.activation_bytes_peak, kRowBytes * unit.floats_a_row);

    std::map<std::string, int> expected = plain.operations;
    const int halves = 2 * static_cast<int>(kLayers);
    expected["attention_forward"] *= 2;
    expected["linear_forward"] *= 2;
    expected["layer_norm_forward"] += kSteps * halves;
    expected["linear_residual_forward"] += kSteps * (halves - unit.units);  // no unit needs its own output again
    expected["gelu_forward"] += kSteps * unit.inner_mlps;
    EXPECT_EQ(recomputed.operations, expected);
    EXPECT_GT(recomputed.gemm_flops, plain.gemm_flops);
    EXPECT_LE(recomputed.gemm_flops - plain.gemm_flops, kForwardFlops);
  }
}

/// The peak is in the backward of `wide`, which has its own hidden layer there in any case; the hidden layers of the
/// three narrow units below it are 4 floats a row each.
TEST(Recompute, OfUnequalUnits_KeepsNoHiddenLayer) {
  constexpr std::size_t kRowBytes = 2 * 12 * sizeof(float);
  const Activity plain = activity_of({{"workload", "irregular"}});
  const Activity recomputed = activity_of({{"workload", "irregular"}, {"recompute", "unit"}});
  EXPECT_EQ(recomputed.crc32c, plain.crc32c);
  EXPECT_EQ(recomputed.activation_bytes_peak + kRowBytes * 3 * 4, plain.activation_bytes_peak);
}

/// Options that change order or storage only, on units of very unequal size: some ranks own nothing of some of them.
TEST(Irregular, EveryScheduleAndWorld_TrainsTheSame) {
  const std::vector<Setting> irregular{{"workload", "irregular"}, {"verify", "true"}};
  const std::vector<SmallResult> alone = run_of(1, irregular);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const std::vector<SmallResult> plain =
        run_of(ranks, joined(irregular, {{"backward-prefetch", "none"}, {"forward-prefetch", "0"}}));
    expect_near(plain.front().steps, alone.front().steps, 2e-5);
    EXPECT_EQ(plain.front().report.at("availability").at("checksums_ok"), true);
    for (const std::vector<Setting>& more :
         {std::vector<Setting>{}, std::vector<Setting>{{"backward-prefetch", "post"}, {"limit-reduce-scatters", "1"}},
          std::vector<Setting>{{"shard", "shard_grad_op"}, {"recompute", "unit"}},
          std::vector<Setting>{{"buffers", "observed"}, {"communicators", "1"}}}) {
      for (const SmallResult& rank : run_of(ranks, joined(irregular, more))) {
        EXPECT_EQ(rank.crc32c, plain.front().crc32c);
      }
    }
  }
}

TEST(Irregular, OneUnit_HoldsMostOfTheBytesAndTheLossFalls) {
  const SmallResult run =
      run_small(small_config({{"workload", "irregular"}, {"steps", "30"}, {"micro-batch", "8"}, {"ranks", "3"}}))
          .front();
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss - 0.5);
  std::int64_t wide = 0;
  std::int64_t smallest = 1'000'000;
  for (const Json& unit : run.report.at("model").at("units")) {
    const auto parameters = unit.at("parameters").get<std::int64_t>();
    smallest = std::min(smallest, parameters);
    if (unit.at("name") == "wide") wide = parameters;
  }
  EXPECT_GT(2 * wide, run.report.at("model").at("parameters").get<std::int64_t>());
  EXPECT_LT(smallest, 3);  // fewer than the ranks
}

}  // namespace
}  // namespace headroom::bench
