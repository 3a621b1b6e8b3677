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
  const BlockPool::Run run = pool.find(units * kUnit, kAny);
  EXPECT_TRUE(run);
  const BlockPool::Index index = pool.join(run);
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
  pool.grow(100 * kUnit);
  const BlockPool::Index a = take(pool, 20), wall1 = take(pool, 1), b = take(pool, 17), wall2 = take(pool, 1);
  const BlockPool::Index c = take(pool, 17), wall3 = take(pool, 1);
  take(pool, 43);
  for (const BlockPool::Index index : {c, a, b}) pool.release(index, {}, false);
  pool.check();
  EXPECT_EQ(pool.find(17 * kUnit, kAny).first, b);
  EXPECT_EQ(pool.find(18 * kUnit, kAny).first, a);
  EXPECT_FALSE(pool.find(21 * kUnit, kAny));
  for (const BlockPool::Index wall : {wall1, wall2, wall3}) pool.release(wall, {}, false);
  pool.check();
  EXPECT_EQ(pool.largest_free_bytes(), 57 * kUnit);
}

TEST(BlockPool, Find_MoreThanEightInAClass_LooksAtAllRatherThanNone) {
  BlockPool pool;
  pool.grow(64 * kUnit);
  std::vector<BlockPool::Index> blocks;
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(take(pool, 2));
    take(pool, 1);
  }
  pool.release(blocks[0], used_by(7, 1), false);
  for (std::size_t i = 1; i < blocks.size(); ++i) pool.release(blocks[i], used_by(8, 1), false);
  take(pool, 4);
  const auto ready = [](const BlockPool::Block& block) { return block.uses == used_by(7, 1); };
  EXPECT_EQ(pool.find(2 * kUnit, ready).first, blocks[0]);
  EXPECT_FALSE(pool.find(3 * kUnit, ready));
}

TEST(BlockPool, Release_BesideNeighboursOfTheSameStreams_BecomesOneWithTheLatestUses) {
  BlockPool pool;
  pool.grow(9 * kUnit);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3), c = take(pool, 3);
  pool.release(a, used_by(0, 5), false);
  pool.release(c, used_by(0, 6), false);
  pool.release(b, used_by(0, 7), false);
  pool.check();
  EXPECT_EQ(pool.first(), pool.last());
  EXPECT_EQ(pool[pool.first()].uses, used_by(0, 7));
  pool.take(pool.first(), kUnit, 1);
  EXPECT_EQ(pool[pool.last()].uses, used_by(0, 7)) << "the rest of a split keeps the uses";
}

TEST(BlockPool, Release_BesideNeighboursOfOtherStreams_StaysApartUntilARunIsWanted) {
  BlockPool pool;
  pool.grow(9 * kUnit);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3), c = take(pool, 3);
  pool.release(a, used_by(0, 5), false);
  pool.release(c, used_by(1, 6), false);
  pool.release(b, used_by(0, 7), true);
  pool.check();
  EXPECT_EQ(pool.find(3 * kUnit, [](const BlockPool::Block& block) { return block.uses == used_by(1, 6); }).first, c);
  EXPECT_EQ(pool.largest_free_bytes(), 3 * kUnit);
  const auto of_stream_0 = [](const BlockPool::Block& block) { return block.uses.ticket_of(1) == 0; };
  EXPECT_FALSE(pool.find(7 * kUnit, of_stream_0));
  const BlockPool::Run six = pool.find(6 * kUnit, of_stream_0);
  EXPECT_EQ(six.first, a);
  EXPECT_EQ(six.last, b);
  const BlockPool::Index all = pool.join(pool.find(9 * kUnit, kAny));
  pool.check();
  DependencySet expected = used_by(0, 7);
  expected.add(1, 6);
  EXPECT_EQ(pool[all].uses, expected);
  EXPECT_EQ(pool[all].state, BlockPool::State::free);
}

TEST(BlockPool, Find_SeveralRuns_TakesWhatIsNeededOfTheSmallest) {
  BlockPool pool;
  pool.grow(30 * kUnit);
  std::vector<BlockPool::Index> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(take(pool, 3));
  // Runs of 4 and of 3 blocks, each block of another stream than its neighbours.
  for (const std::size_t i : {0U, 1U, 2U, 3U, 5U, 6U, 7U}) {
    pool.release(blocks[i], used_by(static_cast<StreamId>(i), 1), false);
  }
  const BlockPool::Run run = pool.find(5 * kUnit, kAny);
  EXPECT_EQ(run.first, blocks[5]);
  EXPECT_EQ(run.last, blocks[6]) << "two are enough";
  EXPECT_EQ(pool.find(10 * kUnit, kAny).first, blocks[0]);
  EXPECT_FALSE(pool.find(13 * kUnit, kAny));
}

TEST(BlockPool, Release_Pending_StaysApartUntilComplete) {
  BlockPool pool;
  pool.grow(6 * kUnit);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3);
  pool.release(a, {}, false);
  pool.release(b, used_by(2, 1), true);
  pool.check();
  EXPECT_EQ(pool.find(3 * kUnit, kAny).first, a);
  EXPECT_EQ(pool.largest_free_bytes(), 3 * kUnit);
  EXPECT_EQ(pool.longest_run_bytes(), 6 * kUnit);
  pool.complete(b, {});
  pool.check();
  EXPECT_EQ(pool.first(), pool.last());
}

TEST(BlockPool, Settle_BetweenSettledNeighbours_Coalesces) {
  BlockPool pool;
  pool.grow(9 * kUnit);
  const BlockPool::Index a = take(pool, 3), b = take(pool, 3), c = take(pool, 3);
  pool.release(a, {}, false);
  pool.release(c, {}, false);
  pool.release(b, used_by(2, 1), true);
  pool.settle(b);
  pool.check();
  EXPECT_EQ(pool.largest_free_bytes(), 9 * kUnit);
  EXPECT_EQ(pool.first(), pool.last());
}

TEST(BlockPool, Grow_AfterABlockOfSomeStream_IsABlockOfItsOwn) {
  BlockPool pool;
  pool.grow(2 * kUnit);
  pool.grow(3 * kUnit);
  EXPECT_EQ(pool[pool.first()].bytes, 5 * kUnit) << "neither was used yet";
  pool.release(take(pool, 5), used_by(1, 1), false);
  pool.grow(4 * kUnit);
  pool.check();
  EXPECT_NE(pool.first(), pool.last());
  EXPECT_EQ(pool.last_run(kAny).bytes, 9 * kUnit);
  EXPECT_EQ(pool.last_run([](const BlockPool::Block& block) { return block.uses.empty(); }).bytes, 4 * kUnit);
  EXPECT_EQ(pool.end(), 9 * kUnit);
}

TEST(BlockPool, Shrink_OverSeveralBlocks_CutsThemOff) {
  BlockPool pool;
  pool.grow(10 * kUnit);
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
  pool.grow(kUnit);
  pool.check();
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
        BlockPool::Run run = pool.find(bytes, kAny);
        if (!run) {
          pool.grow(bytes);
          run = pool.last_run(kAny);
        }
        const BlockPool::Index index = pool.join(run);
        pool.take(index, bytes, 1);
        const std::size_t offset = pool[index].offset;
        const auto next = used.upper_bound(offset);
        ASSERT_TRUE(next == used.end() || next->first >= offset + bytes);
        ASSERT_TRUE(next == used.begin() || std::prev(next)->first + pool[std::prev(next)->second].bytes <= offset);
        used.emplace(offset, index);
      } else if (!used.empty()) {
        const auto victim = std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size()));
        pool.release(victim->second, used_by(static_cast<StreamId>(random() % 3), 1 + random() % 100), false);
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
