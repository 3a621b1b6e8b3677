#include "collectives/rank_order_sum.hpp"

#include "collectives/collective.hpp"
#include "collectives/reference.hpp"

#include <gtest/gtest.h>

namespace headroom::testing {
namespace {

/// Sums `world` chunks into the `into`-th of them, or apart where that is `world`.
template <class T>
std::vector<T> sum_of(int world, std::size_t numel, int into, DType dtype) {
  std::vector<std::vector<T>> chunks;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank <= world; ++rank) chunks.push_back(values<T>(rank, numel, 9));
  for (int rank = 0; rank < world; ++rank) {
    sources.push_back(reinterpret_cast<const std::byte*>(chunks[static_cast<std::size_t>(rank)].data()));
  }
  std::vector<T>& out = chunks[static_cast<std::size_t>(into)];
  detail::sum_in_rank_order(dtype, sources, reinterpret_cast<std::byte*>(out.data()), numel);
  return out;
}

TEST(RankOrderSum, EveryWorldAndPlace_IsBitwiseTheScalarSum) {
  for (const int world : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 23}) {
    for (const std::size_t numel : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{3003}}) {
      for (int into = 0; into <= world; ++into) {
        EXPECT_EQ(sum_of<float>(world, numel, into, DType::f32), summed<float>(world, numel, 9))
            << world << " " << into;
        EXPECT_EQ(sum_of<double>(world, numel, into, DType::f64), summed<double>(world, numel, 9)) << world;
        EXPECT_EQ(sum_of<std::uint16_t>(world, numel, into, DType::bf16), summed<std::uint16_t>(world, numel, 9))
            << world << " " << into;
      }
    }
  }
}

TEST(ChunkOf, EveryCountAndWorld_CoversEachElementOnce) {
  for (const std::size_t numel :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{1000}}) {
    for (int world = 1; world <= 9; ++world) {
      std::size_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const detail::Chunk chunk = detail::chunk_of(numel, rank, world);
        EXPECT_EQ(chunk.begin, next);
        next = chunk.begin + chunk.numel;
      }
      EXPECT_EQ(next, numel);
    }
  }
}

}  // namespace
}  // namespace headroom::testing
