#include "random_program.hpp"

namespace headroom::test {
namespace {

TEST(RandomProgram, ManySeeds_AgreeWithTheNaiveModel) {
  MemoryStatistics sum;
  int refusals = 0, slot_errors = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.operations = 8000;
    options.streams = 2 + seed % 3;
    options.limit_pages = seed % 2 == 0 ? 100 : 400;
    RandomProgram program(options);
    program.run();
    if (testing::Test::HasFailure()) return;
    const MemoryStatistics s = program.statistics();
    sum.waited_reuse += s.waited_reuse;
    sum.host_waits += s.host_waits;
    sum.num_device_free += s.num_device_free;
    sum.pending_free_bytes.allocated += s.pending_free_bytes.allocated;
    refusals += program.refusals();
    slot_errors += program.slot_errors();
  }
  EXPECT_GT(sum.waited_reuse, 100U) << "the programs do not reach this rung";
  EXPECT_GT(sum.host_waits, 100U) << "the programs do not reach this rung";
  EXPECT_GT(sum.num_device_free, 10U) << "the programs do not reach this rung";
  EXPECT_GT(sum.pending_free_bytes.allocated, 0U);
  EXPECT_GT(refusals, 100);
  EXPECT_GT(slot_errors, 100);
}

TEST(RandomProgram, MoreStreamsThanADependencySetHolds_AgreesWithTheNaiveModel) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.operations = 5000;
    options.streams = 9;
    options.slot_pages = 0;  // a collapsed set is stricter than the model's
    RandomProgram program(options);
    program.run();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RandomProgram, SameSeedWithOtherTiming_GivesTheSameAddresses) {
  for (unsigned seed = 21; seed <= 23; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.operations = 3000;
    RandomProgram idle(options);
    options.finish_at_random = true;
    RandomProgram busy(options);
    EXPECT_EQ(idle.run(), busy.run());
  }
}

}  // namespace
}  // namespace headroom::test
