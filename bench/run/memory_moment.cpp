#include "run/memory_moment.hpp"

#include "options/agreement.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <mutex>

namespace headroom::bench {
namespace {

/// Rank 0's, where ranks are threads; every rank's own, where they are processes.
struct Board {
  std::mutex mutex;
  std::vector<const CachingAllocator*> allocators;
  MemoryUse use;
};

}  // namespace

MemoryUse memory_of_process(Communicator& control, bool shares_process, const CachingAllocator& memory,
                            const std::function<std::vector<KnownRange>()>& known) {
  Board mine;
  const bool reads = !shares_process || control.rank() == 0;
  std::array<std::uint64_t, 1> address{shares_process && reads ? reinterpret_cast<std::uintptr_t>(&mine) : 0};
  control.agree(address);
  Board& board = shares_process ? *std::bit_cast<Board*>(address[0]) : mine;
  {
    const std::lock_guard<std::mutex> lock(board.mutex);
    board.allocators.push_back(&memory);
  }
  control.agree({});
  run_checked(control, [&] {
    if (reads) board.use = process_memory(board.allocators, known());
  });
  MemoryUse use = board.use;
  control.agree({});  // the board outlives its readers
  return use;
}

}  // namespace headroom::bench
