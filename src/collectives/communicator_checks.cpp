#include "collectives/communicator_checks.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace headroom::detail {
namespace {

constexpr std::size_t kMostWords = 64, kMostSharedBytes = 4096;

void require(bool holds, const char* operation, const std::string& what) {
  if (!holds) throw std::logic_error(fmt::format("{}: {}", operation, what));
}

void check_view(const TensorView& view, const char* operation, const char* name) {
  const bool countable = std::all_of(view.shape.begin(), view.shape.end(), [](std::int64_t n) { return n >= 0; });
  require(countable, operation, fmt::format("{} has a negative extent", name));
  require(view.data != nullptr || view.numel() == 0, operation,
          fmt::format("{} is null, expected {} elements", name, view.numel()));
  require(reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0, operation,
          fmt::format("{} is not aligned to its dtype {}", name, name_of(view.dtype)));
}

void check_same_dtype(const TensorView& send, const TensorView& recv, const char* operation) {
  require(send.dtype == recv.dtype, operation,
          fmt::format("send is {}, recv is {}, expected the same dtype", name_of(send.dtype), name_of(recv.dtype)));
}

/// `part` must be slice `rank` of `whole`, or lie outside it.
void check_alias(const TensorView& part, const TensorView& whole, int rank, const char* operation) {
  const auto* const begin = part.as<std::byte>();
  const auto* const slices = whole.as<std::byte>();
  const std::less<> before;
  const bool apart = !before(begin, slices + whole.bytes()) || !before(slices, begin + part.bytes());
  const bool own_slice = begin == slices + static_cast<std::size_t>(rank) * part.bytes();
  require(apart || own_slice, operation, fmt::format("send and recv overlap, but not in slice {}, this rank's", rank));
}

void check_root(int root, int size, const char* operation) {
  require(root >= 0 && root < size, operation, fmt::format("root is {}, expected 0 <= root < {}", root, size));
}

}  // namespace

void check_all_gather(const TensorView& send, const TensorView& recv, int rank, int size) {
  check_view(send, "all_gather", "send");
  check_view(recv, "all_gather", "recv");
  check_same_dtype(send, recv, "all_gather");
  require(recv.numel() == size * send.numel(), "all_gather",
          fmt::format("recv has {} elements, expected {} ranks x {}", recv.numel(), size, send.numel()));
  check_alias(send, recv, rank, "all_gather");
}

void check_reduce_scatter(const TensorView& send, const TensorView& recv, int rank, int size) {
  check_view(send, "reduce_scatter", "send");
  check_view(recv, "reduce_scatter", "recv");
  check_same_dtype(send, recv, "reduce_scatter");
  require(send.dtype == DType::f32 || send.dtype == DType::bf16, "reduce_scatter",
          fmt::format("dtype is {}, expected f32 or bf16", name_of(send.dtype)));
  require(send.numel() == size * recv.numel(), "reduce_scatter",
          fmt::format("send has {} elements, expected {} ranks x {}", send.numel(), size, recv.numel()));
  check_alias(recv, send, rank, "reduce_scatter");
}

void check_all_reduce(const TensorView& buffer, const TensorView& scratch, std::size_t scratch_bytes) {
  check_view(buffer, "all_reduce", "buffer");
  require(buffer.dtype == DType::f32 || buffer.dtype == DType::f64 || buffer.dtype == DType::bf16, "all_reduce",
          fmt::format("dtype is {}, expected f32, f64 or bf16", name_of(buffer.dtype)));
  require(scratch.bytes() >= scratch_bytes, "all_reduce",
          fmt::format("scratch has {} bytes, expected at least {}", scratch.bytes(), scratch_bytes));
}

void check_broadcast(const TensorView& buffer, int root, int size) {
  check_view(buffer, "broadcast", "buffer");
  check_root(root, size, "broadcast");
}

void check_agree(std::size_t words) {
  require(words <= kMostWords, "agree", fmt::format("{} words, expected at most {}", words, kMostWords));
}

void check_share(std::size_t bytes, int root, int size) {
  require(bytes <= kMostSharedBytes, "share", fmt::format("{} bytes, expected at most {}", bytes, kMostSharedBytes));
  check_root(root, size, "share");
}

}  // namespace headroom::detail
