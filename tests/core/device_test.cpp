#include <headroom/device.hpp>
#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include "runtime/core/backend.hpp"

#include <memory>
#include <stdexcept>

namespace headroom {
namespace {

TEST(Device, Cuda_WithoutSuchADevice_ThrowsDamageNone) {
  try {
    static_cast<void>(Device::cuda(Device::count(DeviceKind::cuda)));
    FAIL() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.damage(), Damage::none);
    EXPECT_NE(std::string(error.what()).find("CUDA"), std::string::npos) << error.what();
  }
}

TEST(Device, Host_IsAlwaysThereAndHasMemory) {
  EXPECT_EQ(Device::count(DeviceKind::host), 1);
  const MemoryInfo memory = Device::host().memory_info();
  EXPECT_GT(memory.free_bytes, 0U);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

TEST(Device, Backend_CommitsWhatItReserved) {
  const Device device = Device::host();
  detail::Backend& backend = device.backend();
  const std::size_t page_bytes = backend.page_bytes();
  std::byte* const base = backend.reserve(4 * page_bytes);
  ASSERT_TRUE(backend.commit(base, 2 * page_bytes));
  base[2 * page_bytes - 1] = std::byte{7};
  EXPECT_EQ(base[0], std::byte{0});
  backend.decommit(base, 2 * page_bytes);
  ASSERT_TRUE(backend.commit(base, 2 * page_bytes));
  EXPECT_EQ(base[2 * page_bytes - 1], std::byte{0});  // decommitted pages come back empty
  backend.unreserve(base, 4 * page_bytes);
}

TEST(ExecutorNone, Work_IsCompleteAsItIsIssuedAndNeverRun) {
  const Device device = Device::host({.executor = Executor::none});
  Stream first(device), second(device);
  bool ran = false, reported = false;
  const auto kept = std::make_shared<int>(0);
  Operation never;
  never.name = "never";
  never.host = [&ran, kept] { ran = true; };
  const Ticket ticket = first.ref().enqueue(never);
  never.host = nullptr;
  EXPECT_TRUE(first.ref().complete(ticket));
  EXPECT_EQ(kept.use_count(), 1) << "what an operation captured is gone when it is complete";
  second.ref().wait(first, ticket);
  EXPECT_EQ(second.ref().knows(first), ticket);
  Operation always;
  always.name = "always";
  always.host = [&reported] { reported = true; };
  always.always = true;
  second.ref().synchronize(second.ref().enqueue(std::move(always)));
  EXPECT_TRUE(reported);
  EXPECT_FALSE(ran);
}

TEST(ExecutorNone, OperationThatFreesItsOwnStreamsBuffer_IsFollowedByItsMark) {
  const Device device = Device::host({.executor = Executor::none});
  Stream stream(device);
  Operation marks;
  marks.name = "marks";
  std::shared_ptr<int> at_end(new int(0), [&stream](const int* value) {
    delete value;  // NOLINT(cppcoreguidelines-owning-memory)
    static_cast<void>(stream.ref().mark());
  });
  marks.host = [kept = std::move(at_end)] { static_cast<void>(kept); };
  EXPECT_EQ(stream.ref().enqueue(std::move(marks)), 1U);
  EXPECT_EQ(stream.ref().issued(), 2U);
  EXPECT_TRUE(stream.ref().complete(stream.ref().issued()));
}

TEST(ExecutorNone, FailingReport_PoisonsItsStream) {
  const Device device = Device::host({.executor = Executor::none});
  Stream stream(device);
  Operation fails;
  fails.name = "fails";
  fails.always = true;
  fails.host = [] { throw std::runtime_error("no report"); };
  stream.ref().enqueue(std::move(fails));
  EXPECT_THROW(stream.ref().synchronize(), std::runtime_error);
}

TEST(ExecutorNone, Pages_AreMappedButTakeNoMemory) {
  const Device device = Device::host({.executor = Executor::none});
  detail::Backend& backend = device.backend();
  const std::size_t bytes = 2 * device.memory_info().total_bytes / backend.page_bytes() * backend.page_bytes();
  std::byte* const base = backend.reserve(bytes);
  ASSERT_TRUE(backend.commit(base, bytes)) << "more than the machine has";
  EXPECT_EQ(base[bytes - 1], std::byte{0});
  backend.unreserve(base, bytes);
}

}  // namespace
}  // namespace headroom
