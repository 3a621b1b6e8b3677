#include <gtest/gtest.h>

#include <functional>

#include "fake_backend.hpp"
#include "headroom/allocator.hpp"
#include "runtime/memory/allocator_state.hpp"

namespace headroom::test {
namespace {

constexpr std::size_t kPage = FakeBackend::kPage;

struct Pointers : testing::Test {
  FakeDevice fake;
  CachingAllocator memory{fake.device};
  Stream stream{fake.device};

  /// The text of the std::logic_error that the call ends with, which must leave everything as it was.
  std::string misuse(const std::function<void()>& call) {
    const std::uint64_t before = detail::AllocatorState::of(memory).hash();
    try {
      call();
    } catch (const std::logic_error& error) {
      EXPECT_EQ(detail::AllocatorState::of(memory).hash(), before);
      memory.check();
      return error.what();
    }
    return "(no error)";
  }
  std::string misuse_of_free(std::byte* pointer) {
    return misuse([&] { memory.free(pointer); });
  }
};

TEST_F(Pointers, Detach_ThenFree_IsTheEndOfTheAllocation) {
  Buffer buffer = memory.allocate(request(kPage, Category::activation, "plain"), stream);
  std::byte* const place = buffer.data();
  std::byte* const pointer = memory.detach(std::move(buffer));
  EXPECT_EQ(pointer, place);
  EXPECT_FALSE(buffer);  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_EQ(memory.statistics().allocated_bytes.current, kPage);
  memory.check();
  memory.free(pointer);
  EXPECT_EQ(memory.statistics().allocated_bytes.current, 0U);
  memory.check();
  EXPECT_EQ(memory.allocate(request(kPage), stream).data(), place);
}

// cub#329: the second free of a cached block would hand it out twice.
TEST_F(Pointers, Free_Twice_IsRefusedByName) {
  std::byte* const pointer = memory.detach(memory.allocate(request(kPage, Category::other, "twice"), stream));
  memory.free(pointer);
  const std::string text = misuse_of_free(pointer);
  EXPECT_NE(text.find("'twice'"), std::string::npos) << text;
  EXPECT_NE(text.find("was freed already"), std::string::npos) << text;
  const Buffer a = memory.allocate(request(kPage), stream), b = memory.allocate(request(kPage), stream);
  EXPECT_NE(a.data(), b.data());
  EXPECT_NE(misuse_of_free(pointer).find("was freed already"), std::string::npos) << "it is another's by now";
}

TEST_F(Pointers, Free_AfterItsAddressWasDetachedAgain_EndsTheNewOne) {
  std::byte* const first = memory.detach(memory.allocate(request(kPage, Category::other, "first"), stream));
  memory.free(first);
  std::byte* const second = memory.detach(memory.allocate(request(kPage, Category::other, "second"), stream));
  ASSERT_EQ(first, second);
  memory.free(second);
  EXPECT_NE(misuse_of_free(second).find("'second'"), std::string::npos);
}

TEST_F(Pointers, Free_OfWhatIsNoDetachedPointer_SaysWhatItIs) {
  CachingAllocator other(fake.device);
  std::byte* const foreign = other.detach(other.allocate(request(kPage), stream));
  const Buffer owned = memory.allocate(request(kPage, Category::other, "owned"), stream);
  const Stream user(fake.device);
  Buffer pending = memory.allocate(request(kPage, Category::other, "leaving"), stream);
  std::byte* const left = pending.data();
  pending.record_use(user);
  pending.reset();
  int local = 0;
  const std::pair<std::byte*, const char*> cases[] = {
      {owned.data(), "is 'owned', which a Buffer owns"},
      {owned.data() + 512, "is 512 bytes into 'owned', not its beginning"},
      {left, "lies in 'leaving', which is freed already"},
      {owned.data() + 100 * kPage, "nothing is allocated at"},
      {foreign, "is not of this allocator, on fake"},
      {reinterpret_cast<std::byte*>(&local), "is not of this allocator"},
      {nullptr, "is not of this allocator"},
  };
  for (const auto& [pointer, expected] : cases) {
    const std::string text = misuse_of_free(pointer);
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
  other.free(foreign);
}

TEST_F(Pointers, Detach_OfWhatHasNoPointerOfItsOwn_IsRefusedAndKeepsTheBuffer) {
  CachingAllocator other(fake.device);
  Buffer base = memory.allocate(request(kPage, Category::other, "base"), stream);
  Buffer view = base.view(0, 512, "view"), empty = memory.allocate(request(0, Category::other, "empty"), stream);
  Buffer foreign = other.allocate(request(kPage), stream), moved = Buffer();
  const std::pair<Buffer*, const char*> cases[] = {{&base, "'base' has views"},
                                                   {&view, "'base' is held by a view"},
                                                   {&empty, "'empty' has no bytes"},
                                                   {&foreign, "a buffer of another allocator"},
                                                   {&moved, "an empty or moved-from buffer"}};
  for (const auto& each : cases) {
    Buffer* const buffer = each.first;
    const bool held = static_cast<bool>(*buffer);
    const std::string text = misuse([&] { static_cast<void>(memory.detach(std::move(*buffer))); });
    EXPECT_NE(text.find(each.second), std::string::npos) << text;
    EXPECT_EQ(static_cast<bool>(*buffer), held);
  }
  view.reset();
  memory.free(memory.detach(std::move(base)));
  memory.check();
}

TEST_F(Pointers, Slot_CanBeDetached) {
  memory.commit_slots(2 * kPage);
  AllocationRequest set = request(kPage, Category::communication, "slot", Region::communication);
  memory.free(memory.detach(memory.allocate_slot(kPage, set, stream)));
  memory.check();
  EXPECT_TRUE(memory.allocate_slot(kPage, set, stream));
}

TEST(AllocatorEnd, WhatIsDetached_EndsWithIt) {
  FakeDevice fake;
  const Stream stream(fake.device);
  {
    CachingAllocator memory(fake.device);
    static_cast<void>(memory.detach(memory.allocate(request(kPage), stream)));
    memory.free(memory.detach(memory.allocate(request(kPage), stream)));
  }
  EXPECT_TRUE(fake.backend->committed.empty());
}

TEST(AllocatorEnd, BuffersThatOutliveIt_KeepTheirBytesAndRefuseTheRest) {
  FakeDevice fake;
  const Stream stream(fake.device);
  Buffer buffer;
  {
    CachingAllocator memory(fake.device);
    buffer = memory.allocate(request(kPage), stream);
  }
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"record_use", [&] { buffer.record_use(stream); }},
      {"last_use", [&] { buffer.last_use(stream, 0); }},
      {"view", [&] { static_cast<void>(buffer.view(0, 1, "v")); }},
      {"retag", [&] { buffer.retag(Category::other); }},
  };
  for (const auto& [member, call] : calls) {
    try {
      call();
      ADD_FAILURE() << member;
    } catch (const std::logic_error& error) {
      EXPECT_EQ(error.what(), std::string("Buffer::") + member + " after the end of its CachingAllocator");
    }
  }
  EXPECT_EQ(buffer.tensor(DType::u8, {static_cast<std::int64_t>(kPage), 1, 1, 1}).data, buffer.data());
  EXPECT_EQ(fake.backend->committed.size(), 1U);
  buffer.reset();
  EXPECT_TRUE(fake.backend->committed.empty());
}

}  // namespace
}  // namespace headroom::test
