// The seeded executor is the adversary: it defers, it reorders whatever is unordered, and a seed replays.
#include <algorithm>
#include <set>

#include "core/executors.hpp"

namespace headroom::test {
namespace {

constexpr std::uint64_t kSeeds = 40;

Device seeded(std::uint64_t seed) { return Device::host({Executor::seeded, seed}); }

/// Three streams, `a0 < b1 < c2` and FIFO order; everything else is free. Returns the order in which things ran.
std::vector<std::string> order_of(std::uint64_t seed) {
  const Device device = seeded(seed);
  Stream a(device);
  Stream b(device);
  Stream c(device);
  std::vector<std::string> order;
  const auto log = [&order](const std::string& name) {
    return host_operation([&order, name] { order.push_back(name); });
  };
  const Ticket a0 = a.ref().enqueue(log("a0"));
  b.ref().enqueue(log("b0"));
  b.ref().wait(a, a0);
  const Ticket b1 = b.ref().enqueue(log("b1"));
  c.ref().enqueue(log("c0"));
  c.ref().enqueue(log("c1"));
  c.ref().wait(b, b1);
  c.ref().enqueue(log("c2"));
  a.ref().enqueue(log("a1"));
  for (const StreamRef stream : {a.ref(), b.ref(), c.ref()}) stream.synchronize();
  return order;
}

std::ptrdiff_t position(const std::vector<std::string>& order, const std::string& name) {
  return std::find(order.begin(), order.end(), name) - order.begin();
}

TEST(SeededExecutor, Work_UntilSomebodyWaits_IsDeferred) {
  const Device device = seeded(1);
  Stream stream(device);
  bool ran = false;
  const Ticket ticket = stream.ref().enqueue(host_operation([&ran] { ran = true; }));
  EXPECT_FALSE(stream.ref().complete(ticket));
  EXPECT_FALSE(ran);
  stream.ref().synchronize();
  EXPECT_TRUE(ran);
}

TEST(SeededExecutor, SameSeed_RunsTheSameOrder) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_EQ(order_of(seed), order_of(seed));
  }
}

TEST(SeededExecutor, Seeds_RunManyOrdersAllOfThemLegal) {
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<std::string> order = order_of(seed);
    ASSERT_EQ(order.size(), 7U);
    const auto before = [&order](const char* x, const char* y) { return position(order, x) < position(order, y); };
    EXPECT_TRUE(before("a0", "a1") && before("b0", "b1") && before("c0", "c1") && before("c1", "c2"));
    EXPECT_TRUE(before("a0", "b1") && before("b1", "c2"));
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 10U);
}

/// A unit is gathered, computed with, and its buffer is gathered into again. Returns what compute read.
int value_read(std::uint64_t seed, bool wait_for_gather, bool wait_for_release) {
  const Device device = seeded(seed);
  Stream gather(device, {StreamRole::gather, "gather"});
  Stream compute(device);
  int buffer = 0;
  int read = -1;
  const Ticket gathered = gather.ref().enqueue(host_operation([&buffer] { buffer = 1; }));
  if (wait_for_gather) compute.ref().wait(gather, gathered);
  const Ticket released = compute.ref().enqueue(host_operation([&] { read = buffer; }));
  if (wait_for_release) gather.ref().wait(compute, released);
  gather.ref().enqueue(host_operation([&buffer] { buffer = 2; }));
  compute.ref().synchronize();
  return read;
}

TEST(SeededExecutor, MissingWait_IsFoundWithinAFewSeeds) {
  std::set<int> without_gather_wait;
  std::set<int> without_release_wait;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_EQ(value_read(seed, true, true), 1);
    without_gather_wait.insert(value_read(seed, false, true));
    without_release_wait.insert(value_read(seed, true, false));
  }
  EXPECT_TRUE(without_gather_wait.count(0)) << "nobody read before the gather";
  EXPECT_TRUE(without_release_wait.count(2)) << "nobody read after the buffer was gathered into again";
}

}  // namespace
}  // namespace headroom::test
