#include "runtime/core/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <headroom/error.hpp>

#include <cstdint>
#include <fstream>

namespace headroom::detail::host_memory {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public ::testing::Test {
 protected:
  ControlGroups() { fs::create_directories(root_); }
  ~ControlGroups() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  const fs::path root_ =
      fs::path(::testing::TempDir()) / ("headroom_groups_" + std::to_string(getpid()) + "_" +
                                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const MemoryInfo machine_{8000, 10000};
};

TEST_F(ControlGroups, WithoutLimits_LeaveTheMachine) {
  write("job/memory.max", "max");
  write("job/memory.current", "500");
  const MemoryInfo info = within_groups(machine_, "0::/job\n", root_);
  EXPECT_EQ(info.free_bytes, 8000U);
  EXPECT_EQ(info.total_bytes, 10000U);
}

TEST_F(ControlGroups, Version2_TightestOfAllAncestorsBinds) {
  write("memory.max", "9000");
  write("memory.current", "100");
  write("job/memory.max", "4000");
  write("job/memory.current", "3500");
  write("job/memory.stat", "anon 2500\ninactive_file 1000");
  write("job/rank/memory.max", "6000");
  write("job/rank/memory.current", "1000");
  const MemoryInfo info = within_groups(machine_, "0::/job/rank\n", root_);
  EXPECT_EQ(info.free_bytes, 1500U);  // 4000 - (3500 - 1000)
  EXPECT_EQ(info.total_bytes, 4000U);
}

TEST_F(ControlGroups, Version1_UsesTheMemoryHierarchy) {
  write("memory/job/memory.limit_in_bytes", "4000");
  write("memory/job/memory.usage_in_bytes", "1000");
  const MemoryInfo info = within_groups(machine_, "5:cpu:/x\n4:memory,pids:/job\n", root_);
  EXPECT_EQ(info.free_bytes, 3000U);
  EXPECT_EQ(info.total_bytes, 4000U);
}

TEST_F(ControlGroups, UsageBeyondTheLimit_LeavesNothing) {
  write("job/memory.max", "1000");
  write("job/memory.current", "1500");
  EXPECT_EQ(within_groups(machine_, "0::/job\n", root_).free_bytes, 0U);
}

TEST_F(ControlGroups, MalformedMembership_IsIgnored) {
  EXPECT_EQ(within_groups(machine_, "nonsense\n::\n", root_).free_bytes, 8000U);
}

TEST(HostMemory, Reserve_IsAlignedAndCostsNothing) {
  const std::size_t bytes = std::size_t{1} << 38U;
  std::byte* const base = reserve(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base) % kPageBytes, 0U);
  unreserve(base, bytes);
}

TEST(HostMemory, Reserve_BeyondTheAddressSpace_ThrowsOutOfMemory) {
  const std::size_t bytes = std::size_t{1} << 60U;
  try {
    static_cast<void>(reserve(bytes));
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.details().requested_bytes, bytes);
  }
}

TEST(HostMemory, Commit_BeyondFreeMemory_IsRefused) {
  const std::size_t bytes = (info().total_bytes / kPageBytes + 2) * kPageBytes;
  std::byte* const base = reserve(bytes);
  EXPECT_FALSE(commit(base, bytes));
  EXPECT_TRUE(commit(base, kPageBytes));  // the refusal left nothing behind
  unreserve(base, bytes);
}

TEST(HostMemoryDeathTest, DecommittedPages_CannotBeTouched) {
  std::byte* const base = reserve(kPageBytes);
  ASSERT_TRUE(commit(base, kPageBytes));
  decommit(base, kPageBytes);
  EXPECT_DEATH(*const_cast<volatile std::byte*>(base) = std::byte{1}, "");
  unreserve(base, kPageBytes);
}

}  // namespace
}  // namespace headroom::detail::host_memory
