#include <headroom/device.hpp>
#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include "runtime/core/backend.hpp"

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

}  // namespace
}  // namespace headroom
