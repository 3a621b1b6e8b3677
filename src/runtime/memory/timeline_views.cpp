#include <headroom/error.hpp>

#include "runtime/memory/timeline_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

/// Shares of one storage, and how many of its bytes they cover.
namespace headroom::detail {
namespace {

std::size_t union_of(const std::vector<LiveView>& views) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  ranges.reserve(views.size());
  for (const LiveView& view : views) ranges.emplace_back(view.address, view.address + view.bytes);
  std::sort(ranges.begin(), ranges.end());
  std::size_t covered = 0;
  std::uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    if (last <= end) continue;
    covered += last - std::max(first, end);
    end = last;
  }
  return covered;
}

}  // namespace

void TimelineState::measure(Storage& storage) {
  const LiveBuffer& buffer = storage.buffer;
  now.union_bytes -= storage.union_bytes;
  now.share_bytes -= storage.share_bytes;
  storage.union_bytes = buffer.viewed ? union_of(buffer.views) : buffer.requested_bytes;
  storage.share_bytes = buffer.held ? buffer.requested_bytes : 0;
  for (const LiveView& view : buffer.views) storage.share_bytes += view.bytes;
  now.union_bytes += storage.union_bytes;
  now.share_bytes += storage.share_bytes;
}

void TimelineState::add_view(const AllocatorEvent& event) {
  Storage& storage = live(event);
  const LiveBuffer& buffer = storage.buffer;
  if (event.address < buffer.address || event.bytes > buffer.requested_bytes ||
      event.address - buffer.address > buffer.requested_bytes - event.bytes) {
    throw InvalidInput(fmt::format("allocator log: event {} views [{}, +{}) outside of allocation {}, [{}, +{})",
                                   event.number, event.address, event.bytes, event.allocation, buffer.address,
                                   buffer.requested_bytes));
  }
  storage.buffer.views.push_back({event.number, event.address, event.bytes, event.name});
  storage.buffer.viewed = true;
  storage.view_rows.emplace_back();
  ++shares;
  measure(storage);
}

/// The first share goes as a drop of the whole range that no `view` announced; where a view of that range and name is
/// there as well, what remains is the same range either way: the view stays.
void TimelineState::drop_view(const AllocatorEvent& event) {
  Storage& storage = live(event);
  LiveBuffer& buffer = storage.buffer;
  const bool is_whole = event.address == buffer.address && event.bytes == buffer.requested_bytes;
  const auto is_dropped = [&](const LiveView& view) {
    return view.address == event.address && view.bytes == event.bytes && view.name == event.name;
  };
  if (buffer.held && is_whole && event.name == buffer.name) {
    buffer.held = false;
  } else {
    const auto view = std::ranges::find_if(buffer.views, is_dropped);
    if (view == buffer.views.end()) {
      throw InvalidInput(fmt::format("allocator log: event {} drops a view that is not there (allocation {})",
                                     event.number, event.allocation));
    }
    const auto row = storage.view_rows.begin() + (view - buffer.views.begin());
    peaks.freed(*row, event.number);
    storage.view_rows.erase(row);
    buffer.views.erase(view);
    --shares;
  }
  measure(storage);
}

}  // namespace headroom::detail
