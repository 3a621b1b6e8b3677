#include "collectives/collective.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

namespace headroom::detail {

const char* name_of(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::agree: return "agree";
    case CollectiveKind::share: return "share";
    case CollectiveKind::options: return "communicators";
  }
  return "unknown operation";  // A peer's signature is data: it may be anything.
}

std::string describe(const Signature& signature) {
  if (signature.kind == CollectiveKind::options) {
    const std::string deadline = signature.unit < 0 ? "the job's" : fmt::format("{} ms", signature.unit);
    return fmt::format("{} (shard ranks {}, {}, deadline {})", name_of(signature.kind), signature.numel,
                       signature.root == 1 ? "one for both" : "gather and reduce apart", deadline);
  }
  std::string text = fmt::format("{} #{} (", name_of(signature.kind), signature.sequence);
  if (signature.kind == CollectiveKind::agree) {
    text += fmt::format("{} words", signature.numel);
  } else {
    text += fmt::format("{} x {}", name_of(signature.dtype), signature.numel);
  }
  if (signature.root >= 0) text += fmt::format(", root {}", signature.root);
  if (signature.unit >= 0) text += fmt::format(", unit {}", signature.unit);
  return text + ")";
}

const char* name_of(CommunicatorName name) noexcept {
  static constexpr std::array<const char*, 4> kNames{"gather", "reduce", "control", "replicate"};
  return kNames.at(static_cast<std::size_t>(name));
}

WireBytes wire_bytes(const CollectiveRequest& request, int rank, int size) noexcept {
  const std::uint64_t bytes = request.slice_bytes;
  const auto peers = static_cast<std::uint64_t>(size - 1);
  switch (request.signature.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::agree: return {peers * bytes, peers * bytes};
    case CollectiveKind::all_reduce: {
      const Chunk mine = chunk_of(static_cast<std::size_t>(request.signature.numel), rank, size);
      const std::uint64_t own = mine.numel * size_of(request.signature.dtype);
      return {bytes - own + peers * own, bytes - own + peers * own};
    }
    case CollectiveKind::broadcast:
    case CollectiveKind::share: break;
    case CollectiveKind::options: return {};
  }
  if (rank == request.signature.root) return {peers * bytes, 0};
  return {0, bytes};
}

Chunk chunk_of(std::size_t numel, int rank, int size) noexcept {
  constexpr std::size_t kLine = 16;  // Elements: a cache line of f32, two of f64, half of bf16.
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t lines = (numel + kLine - 1) / kLine;
  const std::size_t step = (lines + ranks - 1) / ranks * kLine;
  const std::size_t begin = std::min(numel, static_cast<std::size_t>(rank) * step);
  return {begin, std::min(numel - begin, step)};
}

}  // namespace headroom::detail
