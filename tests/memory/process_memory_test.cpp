// Whose a resident byte is: each kind of owner takes memory, and its figure, and no other, grows by that.
#include <headroom/process_memory.hpp>
#include <headroom/stream.hpp>

#include "runtime/memory/mappings.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace headroom {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMalloc = true;  // a sanitizer's, which lies in mappings that it does not tell about
#else
constexpr bool kOwnMalloc = false;
#endif

constexpr std::size_t kMebibyte = 1024 * 1024;
constexpr std::size_t kNoise = kMebibyte / 4;  // of the test itself between two readings: strings, a heap's end
constexpr std::size_t kShadow = kOwnMalloc ? 128 * kMebibyte : 0;  // that a sanitizer takes for what is touched

std::size_t external_bytes(const MemoryUse& use, const std::string& owner) {
  const auto found = use.external.find(owner);
  return found == use.external.end() ? 0 : found->second.bytes;
}

/// `owner` grew by `bytes`, and what nobody claims did not.
void expect_growth(const MemoryUse& before, const MemoryUse& after, const std::string& owner, std::size_t bytes) {
  EXPECT_GE(external_bytes(after, owner) + kNoise, external_bytes(before, owner) + bytes) << owner;
  EXPECT_LE(external_bytes(after, owner), external_bytes(before, owner) + bytes + kNoise) << owner;
  EXPECT_LE(after.unattributed_bytes, before.unattributed_bytes + kNoise + kShadow) << owner;
}

/// Touched pages of a mapping, until its end.
class Pages {
 public:
  Pages(std::size_t bytes, int flags, int descriptor = -1)
      : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0)) {
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
    std::memset(data_, 1, bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(data_, bytes_); }
  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

TEST(Mappings, Text_IsReadField) {
  std::istringstream text(
      "55e0-55f0 r-xp 00002000 fe:00 247498                     /usr/lib/a b.so (deleted)\n"
      "Size:                 24 kB\nRss:                  12 kB\nVmFlags: rd ex mr mw me\n"
      "7f00-8000 rw-s 00000000 00:01 1 \n"
      "Size:                  4 kB\nRss:                   4 kB\n"
      "8000-9000 ---p 00000000 00:00 0 \n"
      "Rss:                   0 kB\n"
      "9000-a000 rw-p 00000000 00:00 0                          [heap]\n");
  const std::vector<detail::Mapping> found = detail::parse_mappings(text);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].begin, 0x55e0U);
  EXPECT_EQ(found[0].end, 0x55f0U);
  EXPECT_EQ(found[0].resident_bytes, 12U * 1024);
  EXPECT_EQ(found[0].name, "/usr/lib/a b.so (deleted)");
  EXPECT_TRUE(found[0].accessible && !found[0].writable && !found[0].shared);
  EXPECT_EQ(found[1].name, "");
  EXPECT_TRUE(found[1].writable && found[1].shared);
  EXPECT_FALSE(found[2].accessible);
  EXPECT_EQ(found[3].name, "[heap]");
  EXPECT_EQ(found[3].resident_bytes, 0U);
}

TEST(ProcessMemory, EveryByte_IsCountedOnceAndHasASource) {
  const MemoryUse use = process_memory();
  std::size_t sum = use.reserved_bytes + use.unattributed_bytes;
  for (const auto& [name, figure] : use.external) {
    EXPECT_FALSE(figure.source.empty()) << name;
    EXPECT_GT(figure.bytes, 0U) << name;
    sum += figure.bytes;
  }
  EXPECT_EQ(sum, use.used_bytes);
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::size_t kibibytes = 0;
  for (std::string key; rollup >> key && key != "Rss:";) {
  }
  rollup >> kibibytes;
  EXPECT_NEAR(static_cast<double>(use.used_bytes), static_cast<double>(kibibytes) * 1024, kNoise + kShadow);
  EXPECT_GE(use.peak_used_bytes, use.used_bytes / 2);  // the kernel's own count of it is an estimate
}

TEST(ProcessMemory, ArenasOfAnAllocator_AreResidentAsReserved) {
  const Device device = Device::host();
  const Stream stream(device);
  CachingAllocator memory(device);
  const std::array<const CachingAllocator*, 1> allocators{&memory};
  std::vector<Buffer> buffers;
  for (const Category category : {Category::parameter_shard, Category::activation}) {
    AllocationRequest request;
    request.bytes = 5 * kMebibyte;
    request.category = category;
    buffers.push_back(memory.allocate(request, stream.ref()));
  }
  memory.commit_slots(3 * kMebibyte);
  const MemoryUse known = process_memory(allocators);
  EXPECT_EQ(known.reserved_bytes, memory.statistics().reserved_bytes.current);
  EXPECT_GE(known.reserved_bytes, 13 * kMebibyte);
  const MemoryUse unknown = process_memory();
  EXPECT_EQ(unknown.reserved_bytes, 0U);
  EXPECT_GE(unknown.unattributed_bytes + kNoise, known.unattributed_bytes + known.reserved_bytes);
  EXPECT_GT(external_bytes(known, "event_log"), 0U);
}

TEST(ProcessMemory, AnonymousMapping_IsNobodysUntilItIsNamed) {
  const MemoryUse before = process_memory();
  const Pages pages(8 * kMebibyte, MAP_PRIVATE | MAP_ANONYMOUS);
  const MemoryUse after = process_memory();
  EXPECT_GE(after.unattributed_bytes + kNoise, before.unattributed_bytes + 8 * kMebibyte);
  const std::array<KnownRange, 2> halves{KnownRange{pages.data(), 4 * kMebibyte, "left", "the test"},
                                         KnownRange{pages.data() + 5 * kMebibyte, 3 * kMebibyte, "right", "the test"}};
  const MemoryUse named = process_memory({}, halves);
  EXPECT_EQ(external_bytes(named, "left"), 4 * kMebibyte);
  EXPECT_EQ(external_bytes(named, "right"), 3 * kMebibyte);
  EXPECT_EQ(named.external.at("left").source, "the test");
  EXPECT_LE(named.unattributed_bytes, before.unattributed_bytes + kMebibyte + kNoise + kShadow);
}

TEST(ProcessMemory, UntouchedPages_AreNotUsed) {
  const MemoryUse before = process_memory();
  void* const data = mmap(nullptr, 64 * kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  EXPECT_LE(process_memory().used_bytes, before.used_bytes + kNoise + kShadow);
  munmap(data, 64 * kMebibyte);
}

TEST(ProcessMemory, Malloc_IsFoundWhereverItMapped) {
  if (kOwnMalloc) GTEST_SKIP() << "a sanitizer's malloc";
  malloc_trim(0);
  const MemoryUse before = process_memory();
  const std::vector<char> mapped(40 * kMebibyte, 1);  // above malloc's greatest threshold: a mapping of its own
  expect_growth(before, process_memory(), "malloc", mapped.size());

  std::vector<std::unique_ptr<std::array<char, 1000>>> blocks;  // of the thread's own arena
  std::thread([&blocks] {
    while (blocks.size() < 4096) blocks.push_back(std::make_unique<std::array<char, 1000>>());
  }).join();
  const MemoryUse after = process_memory();
  EXPECT_GE(external_bytes(after, "malloc") + kNoise, external_bytes(before, "malloc") + mapped.size() + 4096 * 1000);
  EXPECT_LE(after.unattributed_bytes, before.unattributed_bytes + kNoise);
}

TEST(ProcessMemory, RegisteredFigure_IsTakenOutOfMalloc) {
  if (kOwnMalloc) GTEST_SKIP() << "a sanitizer's malloc";
  CachingAllocator memory(Device::host());
  const std::array<const CachingAllocator*, 1> allocators{&memory};
  const std::vector<char> cache(40 * kMebibyte, 1);
  const MemoryUse before = process_memory(allocators);
  memory.register_external("cache", cache.size(), "the test's vector");
  const MemoryUse after = process_memory(allocators);
  EXPECT_EQ(external_bytes(after, "cache"), cache.size());
  EXPECT_EQ(after.external.at("cache").source, "the test's vector");
  EXPECT_NEAR(static_cast<double>(external_bytes(before, "malloc") - external_bytes(after, "malloc")),
              static_cast<double>(cache.size()), kNoise);
  memory.register_external("cache", 1000 * kMebibyte, "more than there is");
  const MemoryUse clipped = process_memory(allocators);
  EXPECT_EQ(clipped.unattributed_bytes, 0U);
  EXPECT_EQ(external_bytes(clipped, "malloc"), 0U);
}

/// A thread of `stack_bytes` (0: the default) that touches `touched_bytes` of its stack, then waits.
class DeepThread {
 public:
  DeepThread(std::size_t stack_bytes, std::size_t touched_bytes) : touched_bytes_(touched_bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes > 0) pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_create(&thread_, &attributes, run, this);
    pthread_attr_destroy(&attributes);
    touched_.wait();
  }
  DeepThread(const DeepThread&) = delete;
  DeepThread& operator=(const DeepThread&) = delete;
  ~DeepThread() {
    end_.count_down();
    pthread_join(thread_, nullptr);
  }

 private:
  static void* run(void* self) {
    auto& me = *static_cast<DeepThread*>(self);
    auto* const deep = static_cast<volatile char*>(__builtin_alloca(me.touched_bytes_));
    for (std::size_t i = 0; i < me.touched_bytes_; i += 512) deep[i] = 1;
    me.touched_.count_down();
    me.end_.wait();
    return nullptr;
  }
  std::size_t touched_bytes_;
  pthread_t thread_{};
  std::latch touched_{1}, end_{1};
};

TEST(ProcessMemory, ThreadStacks_AreFoundWhateverTheirSize) {
  if (kOwnMalloc) GTEST_SKIP() << "a sanitizer's own state of a thread lies beside its stack";
  for (const std::size_t stack_bytes : {std::size_t{0}, 3 * kMebibyte, 24 * kMebibyte}) {
    const std::size_t touched = stack_bytes > 16 * kMebibyte ? 20 * kMebibyte : 2 * kMebibyte;
    const MemoryUse before = process_memory();
    const DeepThread thread(stack_bytes, touched);
    expect_growth(before, process_memory(), "thread_stacks", touched);
  }
}

TEST(ProcessMemory, SharedMemoryAndFiles_AreToldApart) {
  const MemoryUse before = process_memory();
  const Pages shared(4 * kMebibyte, MAP_SHARED | MAP_ANONYMOUS);
  const MemoryUse with_shared = process_memory();
  expect_growth(before, with_shared, "shared_memory", 4 * kMebibyte);

  std::string path = testing::TempDir() + "headroom_XXXXXX";
  const int descriptor = mkstemp(path.data());
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(ftruncate(descriptor, 2 * kMebibyte), 0);
  {
    const Pages file(2 * kMebibyte, MAP_PRIVATE, descriptor);
    expect_growth(with_shared, process_memory(), "mapped_files", 2 * kMebibyte);
  }
  close(descriptor);
  unlink(path.c_str());
}

/// Zeroed data of the program, which no file backs: its pages come when they are touched.
constexpr std::size_t kPage = 4096;
alignas(kPage) std::array<char, 3 * kMebibyte> zeroed_data;

TEST(ProcessMemory, ZeroedDataOfTheProgram_IsCode) {
  ASSERT_EQ(madvise(zeroed_data.data(), zeroed_data.size(), MADV_DONTNEED), 0);
  const MemoryUse before = process_memory();
  std::memset(zeroed_data.data(), 1, zeroed_data.size());
  expect_growth(before, process_memory(), "code", zeroed_data.size());
}

}  // namespace
}  // namespace headroom
