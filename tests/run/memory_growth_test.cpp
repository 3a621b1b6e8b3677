// A run in its stride takes no more memory: what is read after 10 steps is what is read after 200.
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace headroom::bench {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMalloc = true;  // a sanitizer's, which keeps what was freed
#else
constexpr bool kOwnMalloc = false;
#endif

const MemoryMoment& moment(const RankRecord& record, const std::string& name) {
  for (const MemoryMoment& each : record.memory_use) {
    if (each.name == name) return each;
  }
  throw std::out_of_range(name);
}

std::size_t bytes_of(const MemoryUse& use, const std::string& owner) {
  const auto found = use.external.find(owner);
  return found == use.external.end() ? 0 : found->second.bytes;
}

/// Headroom's own figures are equal to the byte, and a rank alone takes no page more. Where ranks share the process the
/// other figures are pages that were touched ever: a few more may be where a thread waits deeper in its stack, frees in
/// another order, or multiplies at the same time as another one (and so in an OpenBLAS buffer of its own) for the first
/// time after 10 steps. That is no growth with the steps: 190 steps that each kept the records of their operations
/// would show as megabytes.
void expect_no_growth(const MemoryMoment& before, const MemoryMoment& after, int ranks) {
  constexpr std::size_t kMebibyte = 1024 * 1024;
  const std::size_t touched_later = ranks == 1 ? kMebibyte / 64 : kMebibyte / 2;
  EXPECT_EQ(after.statistics.reserved_bytes.current, before.statistics.reserved_bytes.current);
  EXPECT_EQ(after.statistics.num_device_alloc, before.statistics.num_device_alloc);
  EXPECT_EQ(after.statistics.num_alloc_retries, before.statistics.num_alloc_retries);
  EXPECT_EQ(after.statistics.host_waits, before.statistics.host_waits);
  EXPECT_EQ(after.use.reserved_bytes, before.use.reserved_bytes);
  for (const char* own : {"trace", "event_log", "training_data", "reduction_staging"}) {
    EXPECT_EQ(bytes_of(after.use, own), bytes_of(before.use, own)) << own;
  }
  if (kOwnMalloc) return;
  std::string growth;
  for (const auto& owner : after.use.external) {
    growth += " " + owner.first + ": " + std::to_string(bytes_of(before.use, owner.first)) + " of " +
              std::to_string(owner.second.bytes);
  }
  EXPECT_LE(after.use.used_bytes, before.use.used_bytes + touched_later) << growth;
}

class RunInItsStride : public testing::TestWithParam<std::vector<Setting>> {};

TEST_P(RunInItsStride, FromStep10To200_TakesNoMore) {
  std::vector<Setting> settings = GetParam();
  settings.push_back({"steps", "200"});
  const Config config = small_config(settings);
  const TokenData data = TokenData::load(data_options(config));
  run_ranks(config.ranks, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    bench::Run run(config, job, data, make_workload(config), {.memory_at = {10, 200}});
    while (run.next()) {
    }
    const RankRecord record = run.finish();
    expect_no_growth(moment(record, "step_10"), moment(record, "step_200"), config.ranks);
    EXPECT_EQ(record.measured_steps, 199);
  });
}

INSTANTIATE_TEST_SUITE_P(RanksAndBuffers, RunInItsStride,
                         testing::Values(std::vector<Setting>{}, std::vector<Setting>{{"ranks", "2"}},
                                         std::vector<Setting>{{"ranks", "2"}, {"recompute", "unit"}}));

}  // namespace
}  // namespace headroom::bench
