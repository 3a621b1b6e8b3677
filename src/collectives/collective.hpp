#pragma once

#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headroom::detail {

enum class CollectiveKind : std::uint32_t { all_gather, reduce_scatter, all_reduce, broadcast, agree, share, options };

[[nodiscard]] const char* name_of(CollectiveKind kind) noexcept;

/// What all ranks must say alike about one operation; exchanged before any of its data moves.
struct Signature {
  std::uint64_t sequence = 0;  ///< Position in its lane; the first operation has 1, 0 means none yet, or `options`.
  std::int64_t numel = 0;      ///< Of one rank's slice; of the whole buffer where there are no slices.
  CollectiveKind kind = CollectiveKind::all_gather;
  DType dtype = DType::f32;
  std::int32_t root = -1, unit = -1;

  friend bool operator==(const Signature&, const Signature&) noexcept = default;
};

/// "all_gather #7 (f32 x 1024, unit 3)".
[[nodiscard]] std::string describe(const Signature& signature);

/// Which one of its set a communicator is.
enum class CommunicatorName : std::uint8_t { gather, reduce, control, replicate };

[[nodiscard]] const char* name_of(CommunicatorName name) noexcept;

/// A communicator has two independent orders of operations: its stream's, and that of the host's blocking calls. Groups
/// of the same name share a lane: no rank is in two of them.
struct Lane {
  static constexpr int kCount = 8;  ///< Of a set.
  int index = 0;
  int first_rank = 0;  ///< Of the group, in the world.

  [[nodiscard]] static constexpr Lane stream_of(CommunicatorName name, int first_rank) noexcept {
    return {2 * static_cast<int>(name), first_rank};
  }
  [[nodiscard]] static constexpr Lane host_of(CommunicatorName name, int first_rank) noexcept {
    return {2 * static_cast<int>(name) + 1, first_rank};
  }
  [[nodiscard]] CommunicatorName communicator() const noexcept { return static_cast<CommunicatorName>(index / 2); }

  friend bool operator==(const Lane&, const Lane&) noexcept = default;
};

struct CollectiveRequest {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;    ///< The same as `send` where the operation is in place.
  std::size_t slice_bytes = 0;  ///< signature.numel elements.
  Lane lane;
};

struct WireBytes {
  std::uint64_t sent = 0, received = 0;
};

/// Payload of one rank, by the algorithms of this folder: every one of them moves each byte once.
[[nodiscard]] WireBytes wire_bytes(const CollectiveRequest& request, int rank, int size) noexcept;

struct Chunk {
  std::size_t begin = 0, numel = 0;
};

/// The part of an all_reduce that `rank` sums: in cache lines of f32, the last ranks may have none.
[[nodiscard]] Chunk chunk_of(std::size_t numel, int rank, int size) noexcept;

/// One rank's part in one operation under way, driven by whoever runs the stream.
class Flight {
 public:
  Flight() = default;
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  virtual ~Flight() = default;
  [[nodiscard]] virtual Progress poll() = 0;
  virtual void pause(std::chrono::microseconds most) = 0;
};

}  // namespace headroom::detail
