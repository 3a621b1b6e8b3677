#include "collectives/launch.hpp"
#include "collectives/reference.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headroom::testing {
namespace {

constexpr std::array<std::size_t, 9> kCounts{0, 1, 2, 3, 7, 16, 17, 1000, 4099};
// More than one of the pieces in which messages are cut: 256 KiB where they are summed, else 1 MiB.
constexpr std::size_t kLarge = 270'001;

TEST_P(CollectiveContract, AllGather_EveryDtypeAndCount_IsTheConcatenation) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32, DType::u8}) {
      for (const std::size_t numel : kCounts) {
        const std::size_t bytes = numel * size_of(dtype);
        std::vector<double> send_storage(bytes / 8 + 1), recv_storage(world * bytes / 8 + 1);  // Aligned for all.
        auto* const send = reinterpret_cast<std::uint8_t*>(send_storage.data());
        auto* const recv = reinterpret_cast<std::uint8_t*>(recv_storage.data());
        for (std::size_t i = 0; i < bytes; ++i) send[i] = byte_value(rank.job.rank(), i, numel);
        communicators.gather->all_gather(view(send, numel, dtype), view(recv, world * numel, dtype), stream);
        stream.ref().synchronize();
        for (std::size_t i = 0; i < world * bytes; ++i) {
          ASSERT_EQ(recv[i], byte_value(static_cast<int>(i / bytes), i % bytes, numel))
              << "byte " << i << " of " << numel << " x " << name_of(dtype);
        }
      }
    }
  });
}

TEST_P(CollectiveContract, AllGather_SendIsOwnSliceOfRecv_IsTheConcatenation) {
  run([](Rank& rank) {
    const auto world = static_cast<std::size_t>(rank.job.world());
    const auto self = static_cast<std::size_t>(rank.job.rank());
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    for (const std::size_t numel : kCounts) {
      std::vector<float> recv(world * numel, -1.0F), expected;
      const std::vector<float> own = values<float>(rank.job.rank(), numel, numel);
      std::copy(own.begin(), own.end(), recv.begin() + static_cast<std::ptrdiff_t>(self * numel));
      communicators.gather->all_gather(slice_of(recv, self * numel, numel), view_of(recv), stream);
      stream.ref().synchronize();
      for (int peer = 0; peer < rank.job.world(); ++peer) {
        const std::vector<float> theirs = values<float>(peer, numel, numel);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      EXPECT_EQ(recv, expected) << numel;
    }
  });
}

template <class T>
void check_reduce_scatter(Rank& rank) {
  const auto world = static_cast<std::size_t>(rank.job.world());
  const auto self = static_cast<std::size_t>(rank.job.rank());
  const Communicators communicators = rank.job.communicators();
  const Stream stream(rank.job.device());
  for (const std::size_t numel : kCounts) {
    const std::vector<T> expected = part_of(summed<T>(rank.job.world(), world * numel, numel), self * numel, numel);

    std::vector<T> send = values<T>(rank.job.rank(), world * numel, numel), recv(numel);
    communicators.reduce->reduce_scatter(view_of(send), view_of(recv), stream);
    stream.ref().synchronize();
    EXPECT_EQ(recv, expected) << numel << ", apart";

    send = values<T>(rank.job.rank(), world * numel, numel);
    communicators.reduce->reduce_scatter(view_of(send), slice_of(send, self * numel, numel), stream);
    stream.ref().synchronize();
    EXPECT_EQ(part_of(send, self * numel, numel), expected) << numel << ", in place";
  }
}

TEST_P(CollectiveContract, ReduceScatter_F32EveryAliasAndCount_IsBitwiseTheRankOrderSum) {
  run(check_reduce_scatter<float>);
}
TEST_P(CollectiveContract, ReduceScatter_Bf16EveryAliasAndCount_IsTheRankOrderSumInF32RoundedOnce) {
  run(check_reduce_scatter<std::uint16_t>);
}

template <class T>
void check_all_reduce(Rank& rank) {
  const Communicators communicators = rank.job.communicators();
  const Stream stream(rank.job.device());
  for (const std::size_t numel : kCounts) {
    std::vector<T> buffer = values<T>(rank.job.rank(), numel, numel);
    std::vector<std::byte> scratch(communicators.reduce->all_reduce_scratch_bytes(numel * sizeof(T)));
    communicators.reduce->all_reduce(view_of(buffer), view(scratch.data(), scratch.size(), DType::u8), stream);
    stream.ref().synchronize();
    EXPECT_EQ(buffer, summed<T>(rank.job.world(), numel, numel)) << numel;
  }
}

TEST_P(CollectiveContract, AllReduce_F32_IsBitwiseTheRankOrderSumOnEveryRank) { run(check_all_reduce<float>); }
TEST_P(CollectiveContract, AllReduce_F64_IsBitwiseTheRankOrderSumOnEveryRank) { run(check_all_reduce<double>); }
TEST_P(CollectiveContract, AllReduce_Bf16_IsTheRankOrderSumInF32RoundedOnce) { run(check_all_reduce<std::uint16_t>); }

TEST_P(CollectiveContract, Broadcast_EveryRoot_CopiesItsBuffer) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    for (int root = 0; root < rank.job.world(); ++root) {
      for (const std::size_t numel : kCounts) {
        std::vector<float> buffer = values<float>(rank.job.rank(), numel, numel);
        communicators.control->broadcast(view_of(buffer), root, stream);
        stream.ref().synchronize();
        EXPECT_EQ(buffer, values<float>(root, numel, numel)) << "root " << root << ", " << numel;
      }
    }
  });
}

TEST_P(CollectiveContract, Agree_UpTo64Words_IsTheElementwiseMaximum) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    const auto word = [](int peer, std::size_t i) { return std::uint64_t{byte_value(peer, i, 3)} << (8 * (i % 8)); };
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      std::vector<std::uint64_t> words(count);
      for (std::size_t i = 0; i < count; ++i) words[i] = word(rank.job.rank(), i);
      communicators.control->agree(words);
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t most = 0;
        for (int peer = 0; peer < rank.job.world(); ++peer) most = std::max(most, word(peer, i));
        EXPECT_EQ(words[i], most) << i << " of " << count;
      }
    }
  });
}

TEST_P(CollectiveContract, Share_EveryRoot_CopiesItsBytes) {
  run([](Rank& rank) {
    const Communicators communicators = rank.job.communicators();
    for (int root = 0; root < rank.job.world(); ++root) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{4096}}) {
        std::vector<std::byte> bytes(count);
        for (std::size_t i = 0; i < count; ++i) bytes[i] = std::byte{byte_value(rank.job.rank(), i, count)};
        communicators.control->share(bytes, root);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(bytes[i], std::byte{byte_value(root, i, count)});
      }
    }
  });
}

template <class T>
void check_large_messages(Rank& rank, std::size_t numel) {
  const auto world = static_cast<std::size_t>(rank.job.world());
  const auto begin = static_cast<std::size_t>(rank.job.rank()) * numel;
  const Communicators communicators = rank.job.communicators();
  const Stream stream(rank.job.device());
  std::vector<T> full = values<T>(rank.job.rank(), world * numel, 1);
  std::vector<T> everywhere = part_of(full, 0, numel), copied = everywhere;
  const std::vector<T> sums = summed<T>(rank.job.world(), world * numel, 1);
  communicators.reduce->reduce_scatter(view_of(full), slice_of(full, begin, numel), stream);
  communicators.gather->all_gather(slice_of(full, begin, numel), view_of(full), stream);
  communicators.reduce->all_reduce(view_of(everywhere), {}, stream);
  communicators.control->broadcast(view_of(copied), 0, stream);
  stream.ref().synchronize();
  EXPECT_TRUE(full == sums);
  EXPECT_TRUE(everywhere == part_of(sums, 0, numel));
  EXPECT_TRUE(copied == values<T>(0, numel, 1));
}

TEST_P(CollectiveContract, LargeMessages_InPieces_ArriveWhole) {
  run([](Rank& rank) {
    check_large_messages<float>(rank, kLarge);
    check_large_messages<std::uint16_t>(rank, kLarge / 2);
  });
}

TEST_P(CollectiveContract, Bytes_OfCompletedOperations_AreCountedOnTheWire) {
  run([](Rank& rank) {
    const auto peers = static_cast<std::uint64_t>(rank.job.world() - 1);
    const auto world = static_cast<std::size_t>(rank.job.world());
    const Communicators communicators = rank.job.communicators();
    const Stream stream(rank.job.device());
    std::vector<float> part(100), whole(100 * world);
    EXPECT_EQ(communicators.gather->bytes_sent(), 0U);
    communicators.gather->all_gather(view_of(part), view_of(whole), stream);
    communicators.reduce->reduce_scatter(view_of(whole), view_of(part), stream);
    communicators.control->broadcast(view_of(part), 0, stream);
    stream.ref().synchronize();
    EXPECT_EQ(communicators.gather->bytes_sent(), 400 * peers);
    EXPECT_EQ(communicators.gather->bytes_received(), 400 * peers);
    EXPECT_EQ(communicators.reduce->bytes_sent(), 400 * peers);
    EXPECT_EQ(communicators.reduce->bytes_received(), 400 * peers);
    const bool root = rank.job.rank() == 0;
    EXPECT_EQ(communicators.control->bytes_sent(), root ? 400 * peers : 0);
    EXPECT_EQ(communicators.control->bytes_received(), root ? 0 : 400U);
  });
}

}  // namespace
}  // namespace headroom::testing
