// The JSON report: every field of the contract is there, and what should add up does.
#include "commands/commands.hpp"
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace headroom::bench {
namespace {

const SmallResult& reported() {
  static const SmallResult result = run_small(small_config({{"ranks", "2"}, {"steps", "5"}})).front();
  return result;
}

TEST(Report, EveryFieldOfTheContract_IsThere) {
  const Json& report = reported().report;
  for (const char* pointer : {"/headroom/version",
                              "/headroom/report",
                              "/command",
                              "/argv",
                              "/device",
                              "/world",
                              "/config/backward-prefetch",
                              "/model/parameters",
                              "/model/units/0/name",
                              "/model/units/0/parameters",
                              "/model/units/0/shard_bytes",
                              "/model/units/0/full_bytes",
                              "/schedule/hash",
                              "/schedule/text",
                              "/schedule/bound/parameter_sets",
                              "/schedule/bound/gradient_sets",
                              "/schedule/bound/communication_bytes",
                              "/steps/0/step",
                              "/steps/0/loss",
                              "/steps/0/gradient_norm",
                              "/steps/0/seconds",
                              "/steps/0/tokens",
                              "/tokens_per_second",
                              "/seconds_per_step/median",
                              "/seconds_per_step/p10",
                              "/seconds_per_step/p90",
                              "/floating_point/model_flops_per_step",
                              "/floating_point/achieved_gflops",
                              "/floating_point/gemm_peak_gflops",
                              "/floating_point/utilization",
                              "/memory/statistic",
                              "/memory/regions/residents/reserved_peak",
                              "/memory/regions/communication/allocated_peak",
                              "/memory/regions/transients/reserved_peak",
                              "/memory/per_rank/1/allocated_bytes.all.peak",
                              "/memory/per_rank/1/active_bytes.all.peak",
                              "/memory/per_rank/1/reserved_bytes.all.peak",
                              "/memory/per_rank/1/requested_bytes.all.peak",
                              "/memory/per_rank/1/pending_free_bytes.peak",
                              "/memory/per_rank/1/largest_free_block",
                              "/memory/per_rank/1/num_alloc_retries",
                              "/memory/per_rank/1/num_ooms",
                              "/memory/per_rank/1/external",
                              "/memory/per_rank/1/external_sources/code",
                              "/memory/per_rank/1/unattributed",
                              "/memory/per_rank/1/system/2/moment",
                              "/memory/per_rank/1/system/2/used",
                              "/memory/per_rank/1/system/2/reserved",
                              "/memory/per_rank/1/system/2/external/code",
                              "/memory/per_rank/1/system/2/unattributed",
                              "/memory/per_rank/1/process_peak_rss",
                              "/memory/peak/rank",
                              "/memory/peak/event",
                              "/memory/peak/step",
                              "/memory/peak/phase",
                              "/memory/peak/unit",
                              "/memory/peak/operation",
                              "/memory/peak/allocated",
                              "/memory/peak/blocks/0/name",
                              "/memory/peak/blocks/0/unit",
                              "/memory/peak/blocks/0/category",
                              "/memory/peak/blocks/0/bytes",
                              "/memory/peak/blocks/0/allocated_event",
                              "/memory/peak/blocks/0/freed_event",
                              "/memory/peak/blocks/0/storage",
                              "/memory/reserved_over_live",
                              "/memory/sets_peak/parameters",
                              "/memory/sets_peak/gradients",
                              "/communication/all_gathers",
                              "/communication/reduce_scatters",
                              "/communication/bytes_sent",
                              "/communication/bytes_received",
                              "/communication/busy_seconds",
                              "/communication/exposed_seconds",
                              "/communication/completion_seconds",
                              "/gaps/throttle",
                              "/gaps/allocator",
                              "/gaps/launch",
                              "/gaps/vote",
                              "/device_idle_seconds",
                              "/critical_path/compute",
                              "/critical_path/gather",
                              "/critical_path/reduce",
                              "/critical_path/host",
                              "/availability/visits",
                              "/availability/late",
                              "/availability/min_slack_seconds",
                              "/availability/checksums_ok",
                              "/limiter/active",
                              "/limiter/bounds",
                              "/limiter/does_not_bound",
                              "/limiter/waits",
                              "/limiter/waited_seconds",
                              "/recovery/aborted_steps",
                              "/recovery/retries",
                              "/recovery/causes",
                              "/parameters_crc32c"}) {
    EXPECT_TRUE(report.contains(Json::json_pointer(pointer))) << pointer;
  }
  EXPECT_EQ(report.at("/parameters_crc32c"_json_pointer).get<std::string>().size(), 8U);
}

TEST(Report, CategoriesAndOwnBlocks_SumToAllocated) {
  const Json& memory = reported().report.at("memory");
  const Json& peak = memory.at("peak");
  const auto allocated = peak.at("allocated").get<std::size_t>();
  EXPECT_EQ(memory.at("per_rank").at(peak.at("rank").get<std::size_t>()).at("allocated_bytes.all.peak"), allocated);
  std::size_t categories = 0;
  for (const auto& item : peak.at("categories").items()) categories += item.value().get<std::size_t>();
  EXPECT_EQ(categories, allocated);
  EXPECT_EQ(peak.at("categories").size(), static_cast<std::size_t>(kTagCount));
  std::size_t own = 0;
  for (const Json& block : peak.at("blocks")) {
    if (block.at("storage") == "own") own += block.at("bytes").get<std::size_t>();
  }
  EXPECT_EQ(own, allocated);
  EXPECT_GE(memory.at("reserved_over_live").get<double>(), 1.0);
}

TEST(Report, CollectivesOfAStep_AreThoseOfTheSchedule) {
  const Json& report = reported().report;
  const auto text = report.at("schedule").at("text").get<std::string>();
  const auto lines = [&text](const std::string& operation) {
    std::size_t count = 0;
    for (std::size_t at = text.find(operation); at != std::string::npos; at = text.find(operation, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(report.at("communication").at("all_gathers"), lines("\nall_gather "));
  EXPECT_EQ(report.at("communication").at("reduce_scatters"), lines("\nreduce_scatter "));
  EXPECT_EQ(report.at("communication").at("all_reduces"), lines("\nall_reduce "));
  EXPECT_GT(report.at("communication").at("bytes_received").get<std::int64_t>(), 0);
  // both ranks, each of the four measured steps, each gather of a step
  EXPECT_EQ(report.at("availability").at("visits"), 2 * 4 * lines("\nwait_gather "));
}

TEST(Report, TimesOfAStep_LieWithinIt) {
  double mean = 0;
  for (std::size_t i = 1; i < reported().steps.size(); ++i) mean += reported().steps[i].seconds;
  mean /= static_cast<double>(reported().steps.size() - 1);
  constexpr double kRounding = 1e-9;  // of sums in another order: these are one rank's clock, read once
  const TraceSummary& times = reported().record.times;
  EXPECT_NEAR(times.path_compute + times.path_gather + times.path_reduce + times.path_host, mean, kRounding);
  EXPECT_LE(times.completion, mean + kRounding);
  EXPECT_LE(times.exposed, mean + kRounding);
  EXPECT_GT(times.busy, 0);
}

/// used = reserved + external + unattributed, exactly, at every moment.
void expect_sum(const Json& system) {
  const std::vector<std::string> moments{"init", "first_step", "steady"};
  ASSERT_EQ(system.size(), moments.size());
  for (std::size_t i = 0; i < moments.size(); ++i) {
    EXPECT_EQ(system.at(i).at("moment"), moments[i]);
    std::size_t sum = system.at(i).at("reserved").get<std::size_t>();
    for (const auto& owner : system.at(i).at("external").items()) sum += owner.value().get<std::size_t>();
    EXPECT_EQ(sum + system.at(i).at("unattributed").get<std::size_t>(), system.at(i).at("used")) << moments[i];
  }
}

TEST(Report, ProcessMemory_IsSharedEquallyAndSumsUp) {
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second run finds what the first left
    const Json report = run_small(small_config({{"ranks", "3"}, {"steps", "2"}})).front().report;
    for (const Json& rank : report.at("memory").at("per_rank")) {
      expect_sum(rank.at("system"));
      EXPECT_EQ(rank.at("system"), report.at("memory").at("per_rank").at(0).at("system"));
      EXPECT_EQ(rank.at("external"), rank.at("system").back().at("external"));
      EXPECT_EQ(rank.at("unattributed"), rank.at("system").back().at("unattributed"));
      EXPECT_GE(rank.at("process_peak_rss"), rank.at("reserved_bytes.all.peak"));
      for (const auto& owner : rank.at("external").items()) {
        EXPECT_GT(rank.at("external_sources").at(owner.key()).get<std::string>(), "") << owner.key();
      }
    }
  }
}

TEST(Report, ProcessMemory_NamesWhatARunHas) {
  const SmallResult run = run_small(small_config({{"steps", "1"}})).front();
  const Json& rank = run.report.at("memory").at("per_rank").at(0);
  EXPECT_EQ(rank.at("system").back().at("reserved"), run.record.memory.reserved_bytes.current);
  for (const char* owner : {"code", "thread_stacks", "openblas_buffers", "training_data", "trace"}) {
    EXPECT_TRUE(rank.at("external").contains(owner)) << owner;
  }
}

TEST(Report, ScheduleOfARun_IsWhatTheCommandPrints) {
  for (const char* ranks : {"1", "2"}) {
    const Json report = run_small(small_config({{"ranks", ranks}, {"steps", "1"}})).front().report;
    const CommandLine line =
        parse_command_line({"headroom", "schedule", "--layers", "2", "--width", "16", "--heads", "2", "--vocab", "128",
                            "--seq", "12", "--micro-batch", "2", "--ranks", ranks});
    testing::internal::CaptureStdout();
    schedule_command(line);
    std::fflush(stdout);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), report.at("schedule").at("text").get<std::string>());
  }
}

TEST(Report, RunOfOneRank_HasNoCommunication) {
  const Json report = run_small(small_config()).front().report;
  EXPECT_EQ(report.at("communication").at("all_gathers"), 0);
  EXPECT_EQ(report.at("availability").at("visits"), 0);
  EXPECT_TRUE(report.at("availability").at("min_slack_seconds").is_null());
  EXPECT_GT(report.at("floating_point").at("utilization").get<double>(), 0);
}

TEST(Report, LongRun_KeepsNoLongTrace) {
  const SmallResult run = run_small(small_config({{"ranks", "2"}, {"steps", "70"}})).front();
  EXPECT_EQ(run.record.measured_steps, 69);
  EXPECT_EQ(run.record.dropped_trace_records, 0U);
}

}  // namespace
}  // namespace headroom::bench
