#include <gtest/gtest.h>

#include <limits>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"

namespace headroom::test {
namespace {

struct Buffers : testing::Test {
  FakeDevice fake;
  CachingAllocator memory{fake.device};
  Stream stream{fake.device};
};

TEST_F(Buffers, Views_OfOneStorage_CountOnceAndKeepIt) {
  Buffer base = memory.allocate(request(4096), stream);
  std::byte* const place = base.data();
  Buffer a = base.view(0, 1024, "a"), b = a.view(512, 512, "b");
  EXPECT_EQ(b.data(), place + 512);
  EXPECT_EQ(b.bytes(), 512U);
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 4096U);
  EXPECT_EQ(memory.statistics().allocation.current, 1U);
  base.reset();
  a.reset();
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 4096U);
  EXPECT_NE(memory.allocate(request(4096), stream).data(), place);
  memory.check();
  b.reset();
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 0U);
  EXPECT_EQ(memory.allocate(request(4096), stream).data(), place);
  memory.check();
}

TEST_F(Buffers, TwoBuffers_CountTwice) {
  const Buffer a = memory.allocate(request(4096), stream), b = memory.allocate(request(4096), stream);
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 8192U);
}

TEST_F(Buffers, RecordUseOfAView_BindsTheWholeStorage) {
  const Stream user{fake.device};
  Buffer base = memory.allocate(request(4096), stream);
  base.view(0, 512, "v").record_use(user);
  base.reset();
  EXPECT_EQ(memory.statistics().pending_free_bytes.current, 4096U);
}

TEST_F(Buffers, View_OutOfRange_IsRefused) {
  const Buffer base = memory.allocate(request(1000), stream);
  EXPECT_TRUE(base.view(1000, 0, "end"));
  EXPECT_THROW(static_cast<void>(base.view(1000, 1, "x")), std::logic_error);
  EXPECT_THROW(static_cast<void>(base.view(1, 1000, "x")), std::logic_error);
  EXPECT_THROW(static_cast<void>(base.view(SIZE_MAX, 2, "x")), std::logic_error);
  EXPECT_THROW(static_cast<void>(base.view(2, SIZE_MAX, "x")), std::logic_error);
  memory.check();
}

TEST_F(Buffers, EmptyOrMovedFrom_RefusesEverythingButReset) {
  Buffer a = memory.allocate(request(100), stream);
  Buffer b = std::move(a);
  EXPECT_TRUE(b);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.bytes(), 0U);
  EXPECT_THROW(a.record_use(stream), std::logic_error);
  EXPECT_THROW(a.last_use(stream, 1), std::logic_error);
  EXPECT_THROW(a.retag(Category::other), std::logic_error);
  EXPECT_THROW(static_cast<void>(a.view(0, 0, "x")), std::logic_error);
  a.reset();
  b = Buffer();
  EXPECT_EQ(memory.statistics().allocation.current, 0U);
}

TEST_F(Buffers, Tensor_ThatDoesNotFit_IsRefused) {
  const Buffer a = memory.allocate(request(100), stream);
  EXPECT_EQ(a.tensor(DType::f32, {5, 5, 1, 1}).bytes(), 100U);
  EXPECT_EQ(a.tensor(DType::bf16, {50, 1, 1, 1}).data, a.data());
  EXPECT_THROW(static_cast<void>(a.tensor(DType::f32, {26, 1, 1, 1})), std::logic_error);
  EXPECT_THROW(static_cast<void>(a.tensor(DType::f32, {-1, 1, 1, 1})), std::logic_error);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(static_cast<void>(a.tensor(DType::u8, {kHuge, kHuge, 4, 1})), std::logic_error);
  EXPECT_THROW(static_cast<void>(a.tensor(DType::u8, {kHuge, kHuge, 0, 1})), std::logic_error);
  EXPECT_EQ(a.tensor(DType::u8, {kHuge, 1, 0, 1}).numel(), 0);
}

TEST_F(Buffers, Retag_ToAStateOfAnotherCategory_IsRefusedAndChangesNothing) {
  Buffer a = memory.allocate(request(100), stream);
  EXPECT_THROW(a.retag(Category::activation, UseState::current), std::logic_error);
  EXPECT_THROW(a.retag(Category::parameter_full), std::logic_error);
  EXPECT_THROW(a.retag(Category::gradient_full, UseState::gathering), std::logic_error);
  memory.check();
}

TEST_F(Buffers, OutliveTheAllocator_KeepTheirStorage) {
  Buffer a, v;
  {
    CachingAllocator inner(fake.device);
    a = inner.allocate(request(4096), stream);
    v = a.view(0, 100, "v");
  }
  EXPECT_FALSE(fake.backend->committed.empty());
  a.reset();
  EXPECT_FALSE(fake.backend->committed.empty());
  v.reset();
  EXPECT_TRUE(fake.backend->committed.empty());
}

TEST(Tags, Of_EveryPair_AcceptsExactlyTheStatesOfTheCategory) {
  int accepted = 0;
  std::array<int, kTagCount> seen{};
  for (int category = 0; category <= static_cast<int>(Category::other); ++category) {
    for (int state = 0; state <= static_cast<int>(UseState::reducing); ++state) {
      try {
        const Tag tag = tag_of(static_cast<Category>(category), static_cast<UseState>(state));
        ++seen.at(static_cast<std::size_t>(tag));
        ++accepted;
        const std::string name = name_of(tag);
        EXPECT_EQ(name.substr(0, name.find('.')), name_of(static_cast<Category>(category)));
      } catch (const std::logic_error&) {
      }
    }
  }
  EXPECT_EQ(accepted, kTagCount - 1);
  EXPECT_EQ(seen[static_cast<std::size_t>(Tag::parameter_full_releasing)], 0);
  EXPECT_STREQ(name_of(Tag::gradient_full_awaiting_reduce), "gradient_full.awaiting_reduce");
}

}  // namespace
}  // namespace headroom::test
