#include "runtime/memory/block_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stdexcept>

namespace headroom::detail {
namespace {

constexpr std::size_t kUnit = kGranuleBytes;
constexpr auto kAny = [](const BlockPool::Block&) { return true; };

BlockPool::Index take(BlockPool& pool, std::size_t units) {
  const BlockPool::Index index = pool.find(units * kUnit, kAny);
  EXPECT_NE(index, BlockPool::kNone);
  pool.take(index, units * kUnit, 1);
  pool.check();
  return index;
}

DependencySet used_by(StreamId stream, Ticket ticket) {
  DependencySet uses;
  uses.add(stream, ticket);
  return uses;
}

TEST(SizeClasses, Of_EveryGranuleCount_IsMonotoneAndWithinASixteenth) {
  std::size_t before = 0;
  for (std::size_t granules = 1; granules < 5000; ++granules) {
    const std::size_t size_class = SizeClasses::of(granules * kUnit);
    ASSERT_TRUE(size_class == before || size_class == before + 1) << granules;
    if (granules < 32) {
      ASSERT_EQ(size_class, granules);
    }
    before = size_class;
  }
  EXPECT_LT(SizeClasses::of(SIZE_MAX / kUnit * kUnit), SizeClasses::kCount);
}

TEST(SizeClasses, Next_AcrossWords_FindsTheFirst) {
  SizeClasses set;
  EXPECT_EQ(set.next(0), SizeClasses::kCount);
  for (const std::size_t c : {0U, 63U, 64U, 700U}) set.insert(c);
  EXPECT_EQ(set.next(1), 63U);
  EXPECT_EQ(set.next(64), 64U);
  EXPECT_EQ(set.next(65), 700U);
  set.erase(700);
  EXPECT_EQ(set.next(65), SizeClasses::kCount);
}

TEST(BlockPool, Find_SeveralFit_TakesTheSmallestThenTheLowest) {
  BlockPool pool;
  pool.grow(100 * kUnit, false);
  const BlockPool::Index a = take(pool, 20), wall1 = take(pool, 1), b = take(pool, 17), wall2 = take(pool, 1);
  const BlockPool::Index c = take(pool, 17), wall3 = take(pool, 1);
  take(pool, 43);
  for (const BlockPool::Index index : {c, a, b}) pool.release(index, {}, false);
  pool.check();
  EXPECT_EQ(pool.find(17 * kUnit, kAny), b);
  EXPECT_EQ(pool.find(18 * kUnit, kAny), a);
  EXPECT_EQ(pool.find(21 * kUnit, kAny), BlockPool::kNone);
  for (const BlockPool::Index wall : {wall1, wall2, wall3}) pool.release(wall, {}, false);
  pool.check();
  EXPECT_EQ(pool.largest_free_bytes(), 57 * kUnit);
}

TEST(BlockPool, Find_MoreThanEightInAClass_LooksAtAllOnlyWhenAsked) {
  BlockPool pool;
  pool.grow(64 * kUnit, false);
  std::vector<BlockPool::Index> blocks;
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(take(pool, 2));
    take(pool, 1);
  }
  pool.release(blocks[0], used_by(7, 1), false);
  for (std::size_t i = 1; i < blocks.size(); ++i) pool.release(blocks[i], used_by(8, 1), false);
  take(pool, 4);
  const auto ready = [](const BlockPool::Block& block) { return block.uses == used_by(7, 1); };
  EXPECT_EQ(pool.find(2 * kUnit, ready), BlockPool::kNone);
  EXPECT_EQ(pool.find(2 * kUnit, ready, 1000), blocks[0]);
}

TEST(BlockPool, Release_BetweenFreeNeighbours_BecomesOneWithTheUsesOfAll) {
  BlockPool pool;
  pool.grow(9 * kUnit, false);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3), c = take(pool, 3);
  pool.release(a, used_by(0, 5), false);
  pool.release(c, used_by(1, 6), false);
  pool.release(b, used_by(0, 7), false);
  pool.check();
  const BlockPool::Index all = pool.find(9 * kUnit, kAny);
  ASSERT_NE(all, BlockPool::kNone);
  DependencySet expected = used_by(0, 7);
  expected.add(1, 6);
  EXPECT_EQ(pool[all].uses, expected);
  pool.take(all, kUnit, 1);
  EXPECT_EQ(pool[pool.last()].uses, expected) << "the rest of a split keeps the uses";
}

TEST(BlockPool, Release_Pending_StaysApartUntilComplete) {
  BlockPool pool;
  pool.grow(6 * kUnit, false);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3);
  pool.release(a, {}, false);
  pool.release(b, used_by(2, 1), true);
  pool.check();
  EXPECT_EQ(pool.find(6 * kUnit, kAny), BlockPool::kNone);
  EXPECT_EQ(pool.largest_free_bytes(), 3 * kUnit);
  EXPECT_EQ(pool.longest_run_bytes(), 6 * kUnit);
  pool.complete(b, {});
  pool.check();
  EXPECT_NE(pool.find(6 * kUnit, kAny), BlockPool::kNone);
}

TEST(BlockPool, Take_PartOfAPendingBlock_JoinsTheRestToItsFreeNeighbour) {
  BlockPool pool;
  pool.grow(6 * kUnit, false);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3);
  pool.release(b, {}, false);
  pool.release(a, used_by(2, 1), true);
  pool.take(a, kUnit, 2);
  pool.check();
  EXPECT_EQ(pool.largest_free_bytes(), 5 * kUnit);
  EXPECT_EQ(pool[pool.last()].uses, used_by(2, 1));
}

TEST(BlockPool, Grow_JoinOrApart_ExtendsTheLastBlockOrNot) {
  BlockPool pool;
  const BlockPool::Index first = pool.grow(2 * kUnit, false);
  EXPECT_EQ(pool.grow(3 * kUnit, true), first);
  EXPECT_EQ(pool[first].bytes, 5 * kUnit);
  const BlockPool::Index apart = pool.grow(4 * kUnit, false);
  EXPECT_NE(apart, first);
  pool.take(apart, 4 * kUnit, 1);
  pool.check();
  EXPECT_EQ(pool.end(), 9 * kUnit);
}

TEST(BlockPool, Shrink_OverSeveralBlocks_CutsThemOff) {
  BlockPool pool;
  pool.grow(10 * kUnit, false);
  const BlockPool::Index a = take(pool, 4), b = take(pool, 6);
  pool.release(b, {}, false);
  pool.shrink(5 * kUnit);
  pool.check();
  EXPECT_EQ(pool.end(), 5 * kUnit);
  pool.release(a, {}, false);
  pool.shrink(5 * kUnit);
  pool.check();
  EXPECT_EQ(pool.end(), 0U);
  EXPECT_EQ(pool.last(), BlockPool::kNone);
  pool.grow(kUnit, false);
  pool.check();
}

TEST(BlockPool, Check_TwoFreeNeighbours_NamesTheInvariant) {
  BlockPool pool;
  pool.grow(kUnit, false);
  pool.grow(kUnit, false);
  EXPECT_THROW(pool.check(), std::logic_error);
}

TEST(BlockPool, Random_AgainstAMapOfUsedRanges_NeverOverlapsAndTilesAlways) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    BlockPool pool;
    std::map<std::size_t, BlockPool::Index> used;
    for (int i = 0; i < 8000; ++i) {
      const std::size_t bytes = (1 + random() % 40) * kUnit;
      if (used.size() < 60 && random() % 2 == 0) {
        BlockPool::Index index = pool.find(bytes, kAny);
        if (index == BlockPool::kNone) {
          const bool join = pool.last() != BlockPool::kNone && pool[pool.last()].state == BlockPool::State::free;
          index = pool.grow(bytes, join);
        }
        pool.take(index, bytes, 1);
        const std::size_t offset = pool[index].offset;
        const auto next = used.upper_bound(offset);
        ASSERT_TRUE(next == used.end() || next->first >= offset + bytes);
        ASSERT_TRUE(next == used.begin() || std::prev(next)->first + pool[std::prev(next)->second].bytes <= offset);
        used.emplace(offset, index);
      } else if (!used.empty()) {
        const auto victim = std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size()));
        pool.release(victim->second, {}, false);
        used.erase(victim);
      }
      pool.check();
    }
    for (const auto& [offset, index] : used) pool.release(index, {}, false);
    EXPECT_EQ(pool.largest_free_bytes(), pool.end());
  }
}

}  // namespace
}  // namespace headroom::detail
