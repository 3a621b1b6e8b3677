#pragma once

#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headroom::detail {

enum class CollectiveKind : std::uint32_t { all_gather, reduce_scatter, all_reduce, broadcast, agree, share };

[[nodiscard]] const char* name_of(CollectiveKind kind) noexcept;

/// What all ranks must say alike about one operation; exchanged before any of its data moves.
struct Signature {
  std::uint64_t sequence = 0;  ///< Position in its lane; the first operation has 1, 0 means none yet.
  std::int64_t numel = 0;      ///< Of one rank's slice; of the whole buffer where there are no slices.
  CollectiveKind kind = CollectiveKind::all_gather;
  DType dtype = DType::f32;
  std::int32_t root = -1, unit = -1;

  friend bool operator==(const Signature&, const Signature&) noexcept = default;
};

/// "all_gather #7 (f32 x 1024, unit 3)".
[[nodiscard]] std::string describe(const Signature& signature);

/// A communicator has two independent orders of operations: its stream's, and that of the host's blocking calls.
struct Lane {
  static constexpr int kCount = 6;  ///< Of a set: gather, reduce, control.
  int index = 0;

  [[nodiscard]] static constexpr Lane stream_of(int communicator) noexcept { return {2 * communicator}; }
  [[nodiscard]] static constexpr Lane host_of(int communicator) noexcept { return {2 * communicator + 1}; }
  [[nodiscard]] const char* communicator() const noexcept;
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

/// The part of an all_reduce that `rank` sums: whole cache lines, the last ranks may have none.
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
