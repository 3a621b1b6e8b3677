#pragma once

#include "options/command_line.hpp"
#include "workloads/tensor_source.hpp"

#include <headroom/communicator.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace headroom::bench {

enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_reduce, broadcast };
[[nodiscard]] const char* name_of(Collective collective) noexcept;

/// One collective at one size. Rates are bytes a second as nccl-tests defines them (doc/PERFORMANCE.md there): algbw is
/// `bytes` over the time; busbw is algbw times what a rank has to send or receive of each byte.
struct CommRow {
  Collective collective = Collective::all_gather;
  std::size_t bytes = 0;  ///< Of the larger buffer.
  double seconds = 0;     ///< Median over the repeats; of each, the slowest rank's.
  double algbw = 0, busbw = 0;
  /// The busbw of ranks that just copy, in their own memory and all at once, the bytes that the collective has to bring
  /// them: the best repeat. None on one rank.
  std::optional<double> memcpy = {};
};

/// Measures one rank's collectives. Every rank makes the same calls.
class CommBench {
 public:
  CommBench(const CommandLine& line, const Job& job, Communicator& control);

  /// All collectives at about `bytes` (rounded down to equal parts). Before and after the timing, every result is
  /// compared with the values expected. Throws, on all ranks: CollectiveMismatch's exit code where one differs.
  [[nodiscard]] std::vector<CommRow> measure(std::size_t bytes);

 private:
  struct Buffers {
    Tensor data, scratch;
    TensorView own;  ///< This rank's part of data.
  };
  [[nodiscard]] Buffers make_buffers(std::size_t bytes) const;
  void enqueue(Collective collective, const Buffers& buffers) const;
  void copy(Collective collective, const Buffers& buffers) const;
  void verify(Collective collective, const Buffers& buffers) const;
  [[nodiscard]] std::vector<double> seconds(std::size_t bytes, const std::function<void()>& enqueue) const;
  [[nodiscard]] CommRow measure(Collective collective, const Buffers& buffers) const;

  Communicator& control_;
  int repeats_;
  DType dtype_;
  Communicators communicators_;
  CachingAllocator memory_;
  Stream compute_;
  TensorSource tensors_;
};

}  // namespace headroom::bench
