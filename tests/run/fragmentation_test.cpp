// Recorded steps of the default GPT, nothing computed: what is reserved for what lives, beside PyTorch's policies.
#include "options/config.hpp"
#include "replay/policy.hpp"
#include "replay/replay.hpp"
#include "run/recorded_runs.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace headroom::bench {
namespace {

struct Trace {
  const char *name, *ranks, *recompute;
  bool varies;
};

void PrintTo(const Trace& trace, std::ostream* out) { *out << trace.name; }

Recording record(const Trace& trace) {
  return record_run(make_config({{"executor", "none"},
                                 {"ranks", trace.ranks},
                                 {"recompute", trace.recompute},
                                 {"steps", trace.varies ? "200" : "40"},
                                 {"seq", trace.varies ? "1024" : "256"}}),
                    trace.varies);
}

double over(std::size_t reserved, std::size_t live) {
  return live == 0 ? 1 : static_cast<double>(reserved) / static_cast<double>(live);
}

/// Highest sum of bytes between alloc and free_completed, of a region's dynamic blocks or of its slots.
std::size_t live_peak(const Recording& recording, Region region, bool slots) {
  std::size_t live = 0, peak = 0;
  for (const AllocatorEvent& event : recording.events) {
    if (event.region != region || event.is_slot() != slots) continue;
    if (event.kind == AllocatorEvent::Kind::alloc) peak = std::max(peak, live += event.bytes);
    if (event.kind == AllocatorEvent::Kind::free_completed) live -= event.bytes;
  }
  return peak;
}

class Fragmentation : public testing::TestWithParam<Trace> {};

TEST_P(Fragmentation, RecordedSteps_ReserveLittleMoreThanLives) {
  const Recording recording = record(GetParam());
  const ReplaySource source = replay_source(recording);
  const ExactReplay exact = replay_exactly(source);
  EXPECT_FALSE(exact.difference) << exact.difference->event << ": expected " << exact.difference->expected << "\nfound "
                                 << exact.difference->found;
  const ReplayFigures ours = replay(source, ReplayPolicy::ours, {.repeats = 1});
  const std::size_t live = live_peak(recording, Region::transients, false);
  const std::size_t slots = live_peak(recording, Region::communication, true);
  const std::size_t reserved = ours.regions[static_cast<std::size_t>(Region::transients)].reserved_bytes.peak;
  const std::size_t planned = ours.regions[static_cast<std::size_t>(Region::communication)].reserved_bytes.peak;
  std::printf("%-22s transients %.4f (%zu of %zu), planned %.4f (%zu of %zu)\n", GetParam().name, over(reserved, live),
              reserved, live, over(planned, slots), planned, slots);
  EXPECT_LE(ours.reserved_over_live(), 1.08);
  EXPECT_LE(over(reserved, live), *GetParam().recompute == 'n' ? 1.08 : 1.16);
  EXPECT_LE(over(planned, slots), 1.03);
  ASSERT_TRUE(ours.growth);
  EXPECT_LE(ours.growth->bytes, GetParam().varies ? INT64_MAX : 0);
  ASSERT_TRUE(ours.drift);
  EXPECT_LE(*ours.drift, 0.01);
  for (const ReplayPolicy policy : {ReplayPolicy::ours, ReplayPolicy::native, ReplayPolicy::expandable}) {
    const ReplayFigures each = policy == ReplayPolicy::ours ? ours : replay(source, policy, {.repeats = 1});
    std::printf("  %-11s live %8.1f MiB reserved %8.1f MiB %.4f, drift %6.2f %%, segments %3zu, %5.1f ns/op\n",
                name_of(policy), static_cast<double>(each.live_peak) / kMebi,
                static_cast<double>(each.reserved_peak) / kMebi, each.reserved_over_live(),
                100 * each.drift.value_or(0), each.segments, each.ns_per_operation);
    if (policy == ReplayPolicy::native) {
      EXPECT_GE(each.reserved_over_live(), ours.reserved_over_live());
    }
  }
}

TEST_P(Fragmentation, SteadySteps_GrowNothingAndWaitForNothing) {
  const Recording recording = record(GetParam());
  constexpr std::uint64_t kSteady = 20;
  bool steady = false;
  for (const AllocatorEvent& event : recording.events) {
    using Kind = AllocatorEvent::Kind;
    if (event.kind == Kind::step) steady = event.allocation >= kSteady;
    if (!steady) continue;
    EXPECT_FALSE(event.kind == Kind::segment_map || event.kind == Kind::segment_unmap ||
                 event.kind == Kind::host_wait || event.kind == Kind::callback || event.kind == Kind::out_of_memory)
        << "event " << event.number;
  }
  EXPECT_TRUE(steady);
}

INSTANTIATE_TEST_SUITE_P(
    Traces, Fragmentation,
    testing::Values(Trace{"fixed", "1", "none", false}, Trace{"fixed_recompute", "1", "unit", false},
                    Trace{"varying", "1", "none", true}, Trace{"varying_recompute", "1", "unit", true},
                    Trace{"planned_fixed", "2", "none", false}, Trace{"planned_varying", "2", "none", true},
                    Trace{"planned_varying_recompute", "2", "unit", true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace headroom::bench
