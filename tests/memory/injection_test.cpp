#include <gtest/gtest.h>

#include <functional>

#include "failing_heap.hpp"
#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

/// Live, free, pending and planned memory in few pages, and a pointer.
struct Scene {
  Scene() {
    memory.commit_slots(2 * kPage);
    live = memory.allocate(request(kPage, Category::parameter_full, "live"), one);
    pointer = memory.detach(memory.allocate(request(kPage), one));
    memory.allocate(request(2 * kPage), two).reset();
    Buffer pending = memory.allocate(request(kPage), one);
    pending.record_use(two);
    pending.reset();
    memory.allocate(request(3 * kPage, Category::other, "r", Region::residents), two).reset();
  }
  ~Scene() { memory.free(pointer); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  static AllocationRequest request(std::size_t bytes, Category category = Category::activation,
                                   std::string_view name = "x", Region region = Region::transients) {
    AllocationRequest asked = test::request(bytes, category, name, region);
    if (category == Category::parameter_full) asked.state = UseState::next;
    return asked;
  }

  FakeDevice fake;
  CachingAllocator memory{fake.device, {.limit_bytes = 10 * kPage}};
  Stream one{fake.device}, two{fake.device};
  Buffer live;
  std::byte* pointer = nullptr;
};

struct Call {
  const char* name;
  std::function<void(Scene&)> run;
  bool in_parts = false;  ///< Of which some are done when a later one fails.
};

const Call kCalls[] = {
    {"allocate_ready", [](Scene& s) { s.memory.allocate(Scene::request(2 * kPage), s.two).reset(); }},
    {"allocate_waited", [](Scene& s) { s.memory.allocate(Scene::request(3 * kPage), s.one).reset(); }},
    {"allocate_returned", [](Scene& s) { s.memory.allocate(Scene::request(4 * kPage), s.one).reset(); }},
    {"allocate_new_name",
     [](Scene& s) {
       s.memory.allocate(Scene::request(512, Category::input, "a name not seen before"), s.two).reset();
     }},
    {"allocate_many",
     [](Scene& s) {
       std::vector<Buffer> many;
       many.reserve(40);
       for (int i = 0; i < 40; ++i) many.push_back(s.memory.allocate(Scene::request(0), s.one));
     },
     true},
    {"allocate_slot",
     [](Scene& s) {
       s.memory.allocate_slot(512, Scene::request(512, Category::communication, "s", Region::communication), s.one)
           .reset();
     }},
    {"commit_slots", [](Scene& s) { s.memory.commit_slots(3 * kPage); }},
    {"view", [](Scene& s) { s.live.view(0, 512, "a view").reset(); }},
    {"retag", [](Scene& s) { s.live.retag(Category::parameter_full, UseState::current, s.two); }},
    {"record_use", [](Scene& s) { s.live.record_use(s.two); }},
    {"detach", [](Scene& s) { s.memory.free(s.memory.detach(s.memory.allocate(Scene::request(512), s.two))); }, true},
    {"mark_step", [](Scene& s) { s.memory.mark_step(1); }},
    {"mark_unit", [](Scene& s) { s.memory.mark_unit(1, "forward", "compute"); }},
    {"trim", [](Scene& s) { s.memory.trim(); }},
    {"reset_peak", [](Scene& s) { s.memory.reset_peak(); }},
    {"statistics", [](Scene& s) { static_cast<void>(s.memory.statistics()); }},
    {"peak", [](Scene& s) { static_cast<void>(s.memory.peak()); }},
};

class Injection : public testing::TestWithParam<Call> {
 protected:
  /// Makes the call fail at its n-th fallible point, for each n, by `arm(scene, n)`; returns how many there are. After
  /// each failure the state is what it was, and the call succeeds once nothing fails any more.
  static int fail_each(const std::function<void(Scene&, int)>& arm, const std::function<void(Scene&)>& disarm) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(n);
      Scene scene;
      const detail::AllocatorState& state = detail::AllocatorState::of(scene.memory);
      const std::uint64_t before = state.hash();
      bool failed = false;
      arm(scene, n);
      try {
        GetParam().run(scene);
      } catch (const std::exception& error) {
        failed = true;
      }
      disarm(scene);
      scene.memory.check();
      if (!failed) return n;
      EXPECT_TRUE(GetParam().in_parts || state.hash() == before);
      GetParam().run(scene);
      scene.memory.check();
      if (HasFailure() || n > 1000) return n;
    }
  }
};

TEST_P(Injection, HeapThatFailsAtEachPoint_LeavesTheState) {
  fail_each([](Scene&, int n) { allocations_left = n; }, [](Scene&) { allocations_left = -1; });
}

TEST_P(Injection, CommitThatFailsAtEachPoint_LeavesTheState) {
  fail_each(
      [](Scene& s, int n) {
        s.fake.backend->fail_commit_from = s.fake.backend->commits + static_cast<std::size_t>(n);
        s.fake.backend->fail_commit_count = 1;
      },
      [](Scene& s) { s.fake.backend->fail_commit_from = SIZE_MAX; });
}

TEST_P(Injection, WaitThatFailsAtEachPoint_LeavesTheState) {
  fail_each(
      [](Scene& s, int n) {
        s.fake.backend->fail_wait_from = s.fake.backend->given_waits + static_cast<std::size_t>(n);
        s.fake.backend->fail_synchronize_from = s.fake.backend->synchronized + static_cast<std::size_t>(n);
      },
      [](Scene& s) { s.fake.backend->fail_wait_from = s.fake.backend->fail_synchronize_from = SIZE_MAX; });
}

// A free cannot fail: where its tickets cannot be made, they are made later.
TEST_P(Injection, EventThatCannotBeRecorded_DelaysTheFreeOnly) {
  Scene scene;
  scene.fake.backend->fail_mark_from = scene.fake.backend->marks;
  Buffer buffer = scene.memory.allocate(Scene::request(512), scene.two);
  buffer.record_use(scene.one);
  buffer.reset();
  scene.memory.check();
  EXPECT_EQ(scene.memory.statistics().pending_free_bytes.current, kPage + 512) << "not ordered yet";
  scene.fake.backend->fail_mark_from = SIZE_MAX;
  GetParam().run(scene);
  scene.memory.check();
}

TEST_P(Injection, ClockThatStandsOrRunsBackwards_ChangesNothing) {
  std::vector<std::uint64_t> hashes;
  for (const std::int64_t clock_step : {1, 0, -1000}) {
    Scene scene;
    scene.fake.backend->set_now(1000);
    scene.fake.backend->clock_step = clock_step;
    GetParam().run(scene);
    scene.memory.check();
    hashes.push_back(detail::AllocatorState::of(scene.memory).hash());
    EXPECT_EQ(hashes.front(), hashes.back());
    std::int64_t before = 0;
    for (const AllocatorEvent& event : scene.memory.events())
      EXPECT_GE(event.time_ns, std::exchange(before, event.time_ns));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Injection, testing::ValuesIn(kCalls), [](const auto& each) { return each.param.name; });

TEST(InjectionAtTheStart, AddressesThatCannotBeReserved_LeaveNoneBehind) {
  for (std::size_t n = 0; n < 4; ++n) {
    FakeDevice fake;
    fake.backend->fail_reserve_at = n;
    EXPECT_THROW(CachingAllocator memory(fake.device), OutOfMemory);
    EXPECT_EQ(fake.backend->reserves, 1U) << "all but the one that failed were given back";
    fake.backend->fail_reserve_at = SIZE_MAX;
    CachingAllocator memory(fake.device);
    const Stream stream(fake.device);
    EXPECT_TRUE(memory.allocate(request(1), stream));
  }
}

TEST(InjectionOfAFree, HeapThatIsFull_DoesNotStopIt) {
  Scene scene;
  Buffer view = scene.live.view(0, 512, "v");
  scene.live.record_use(scene.two);
  scene.one.ref().wait(scene.two, scene.two.ref().issued());
  allocations_left = 0;
  view.reset();
  scene.live.reset();
  allocations_left = -1;
  scene.memory.check();
}

}  // namespace
}  // namespace headroom::test
