#pragma once

#include <headroom/timeline.hpp>

namespace headroom::detail {

/// What events say of one storage. `buffer`: as first seen (its tag too), its last uses as seen at its end.
struct BufferLife {
  struct Change {
    Tag tag = Tag::other;
    StreamId stream = 0;
    Ticket ticket = 0;
    std::int64_t time_ns = 0;
  };
  LiveBuffer buffer;
  std::int64_t time_ns = 0;  ///< Of its alloc.
  bool before = false;       ///< It was allocated before the first event.
  bool shared = false;       ///< A view of all of it was alive.
  std::vector<Change> changes;
  std::optional<std::int64_t> freed;  ///< When that was requested.
};

/// In the order of allocation. Throws: InvalidInput for an event of a storage that is not live.
[[nodiscard]] std::vector<BufferLife> buffer_lives(std::span<const LiveBuffer> live,
                                                   std::span<const AllocatorEvent> events);

}  // namespace headroom::detail
