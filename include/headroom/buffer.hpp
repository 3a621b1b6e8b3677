#pragma once

#include <headroom/events.hpp>
#include <headroom/tensor.hpp>

#include <array>
#include <memory>
#include <string_view>

namespace headroom {

namespace detail {
struct AllocatorState;
}

struct AllocationRequest {
  std::size_t bytes = 0;  ///< 0 gives a unique, empty buffer.
  Category category = Category::other;
  std::string_view name;  ///< Interned; the same few names, not one a call.
  int unit = -1;
  UseState state = UseState::none;
  Region region = Region::transients;
};

/// Owns one block, or a view into one (a share of its storage). Move-only. Freed in stream order: the block may be
/// handed to any stream that is ordered after every use recorded here; the destructor never blocks and never throws.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< As requested.
  /// Throws: std::logic_error where the extents need more than bytes().
  [[nodiscard]] TensorView tensor(DType dtype, std::array<std::int64_t, 4> shape) const;
  /// The block waits, before it is reused, for everything enqueued on `stream` until it is freed. The stream that it
  /// was allocated for counts without this.
  void record_use(StreamRef stream);
  /// Says that the last use on `stream` is at `ticket`, in place of the fresh ticket that a free would take there: for
  /// users that know their order exactly (slots). Covers the allocation's own stream too.
  void last_use(StreamRef stream, Ticket ticket);
  /// A share of the same storage, counted once; the storage lives until its last share is gone. Throws:
  /// std::logic_error.
  [[nodiscard]] Buffer view(std::size_t offset_bytes, std::size_t bytes, std::string_view name) const;
  void retag(Category category, UseState state = UseState::none);
  /// The same, from the work on that `stream` is given next: what a timeline in device time shows.
  void retag(Category category, UseState state, StreamRef stream);
  void reset() noexcept;

 private:
  friend struct detail::AllocatorState;
  std::shared_ptr<detail::AllocatorState> state_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t block_ = 0, share_ = 0;
};

}  // namespace headroom
