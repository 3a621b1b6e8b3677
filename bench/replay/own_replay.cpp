#include "replay/own_replay.hpp"

#include "runtime/memory/allocator_state.hpp"

#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;

std::pair<Category, UseState> category_of(Tag tag) {
  switch (tag) {
    case Tag::parameter_shard: return {Category::parameter_shard, UseState::none};
    case Tag::parameter_full_gathering: return {Category::parameter_full, UseState::gathering};
    case Tag::parameter_full_next: return {Category::parameter_full, UseState::next};
    case Tag::parameter_full_current: return {Category::parameter_full, UseState::current};
    case Tag::parameter_full_retained:
    case Tag::parameter_full_releasing: return {Category::parameter_full, UseState::retained};
    case Tag::gradient_full_computing: return {Category::gradient_full, UseState::computing};
    case Tag::gradient_full_awaiting_reduce: return {Category::gradient_full, UseState::awaiting_reduce};
    case Tag::gradient_full_reducing: return {Category::gradient_full, UseState::reducing};
    case Tag::gradient_full_retained: return {Category::gradient_full, UseState::retained};
    case Tag::gradient_shard: return {Category::gradient_shard, UseState::none};
    case Tag::optimizer_state: return {Category::optimizer_state, UseState::none};
    case Tag::activation: return {Category::activation, UseState::none};
    case Tag::workspace: return {Category::workspace, UseState::none};
    case Tag::communication: return {Category::communication, UseState::none};
    case Tag::input: return {Category::input, UseState::none};
    case Tag::other: break;
  }
  return {Category::other, UseState::none};
}

ReplayBackend::Options backend_options(const RecordingInfo& info, const OwnReplay::Options& options) {
  ReplayBackend::Options result{info.layout, true};
  if (options.limit_bytes == 0 || options.limit_bytes == info.layout.limit_bytes) return result;
  result.as_recorded = false;
  const std::size_t page = std::max<std::size_t>(info.layout.page_bytes, 1);
  result.layout.region_bytes = std::max(options.limit_bytes / page * page, page);
  return result;
}

bool is_inside(const AllocatorEvent& event) { return (event.flags & AllocatorEvent::kInside) != 0; }

[[noreturn]] void refuse(const AllocatorEvent& event, const char* what) {
  throw InvalidInput(fmt::format("recorded event {} {}", event.number, what));
}

}  // namespace

OwnReplay::OwnReplay(const RecordingInfo& info, const Options& options)
    : as_recorded_(options.limit_bytes == 0 || options.limit_bytes == info.layout.limit_bytes),
      compares_(options.compare && as_recorded_),
      layout_(info.layout),
      backend_(std::make_shared<ReplayBackend>(backend_options(info, options))) {
  AllocatorOptions settings;
  settings.limit_bytes = as_recorded_ ? info.layout.limit_bytes : options.limit_bytes;
  settings.event_capacity = options.event_capacity;
  memory_ = std::make_unique<CachingAllocator>(Device(backend_), settings);
  backend_->on_host_wait = [this] { run_inside(); };
}

OwnReplay::~OwnReplay() { backend_->on_host_wait = nullptr; }

void OwnReplay::run(std::span<const AllocatorEvent> events, std::span<const std::string> names) {
  take_names(names);
  for (const AllocatorEvent& event : events) step(event);
  if (compares_ && !difference_) compare();
}

void OwnReplay::take_names(std::span<const std::string> names) {
  for (std::size_t i = names_.size(); i < names.size(); ++i) {
    names_.push_back(names[i]);
    const std::size_t space = names[i].find(' ');
    const bool has_operation = space != std::string::npos;
    marks_.emplace_back(names[i].substr(0, space), has_operation ? names[i].substr(space + 1) : std::string());
  }
}

/// What happened while a call waited is done when the allocator, in that call, waits again.
void OwnReplay::step(const AllocatorEvent& event) {
  if (as_recorded_ && (event.kind == Kind::host_wait || event.kind == Kind::callback)) {
    windows_.emplace_back();
    if (event.kind == Kind::callback && ++asked_ > callbacks_) {
      ++callbacks_;
      memory_->add_pressure_callback([this](std::size_t wanted) { return asked(wanted); });
    }
  } else if (as_recorded_ && is_inside(event) && !windows_.empty()) {
    windows_.back().push_back(event);
  } else {
    execute(event);
  }
}

void OwnReplay::execute(const AllocatorEvent& event) {
  backend_->set_now(event.time_ns);
  switch (event.kind) {
    case Kind::wait: return wait(event);
    case Kind::segment_map: return backend_->expect_pages({event.address, event.bytes});
    case Kind::use:
      uses_.emplace_back(event.stream, event.ticket);
      return backend_->set_mark(event.stream, event.ticket);
    case Kind::alloc: return allocate(event);
    case Kind::out_of_memory: return refuse_again(event);
    case Kind::slots: return commit_slots(event);
    case Kind::free_requested: return free(event);
    case Kind::view: return view(event);
    case Kind::view_drop: return drop_view(event);
    case Kind::retag: return retag(event);
    case Kind::step: return memory_->mark_step(static_cast<std::int64_t>(event.allocation));
    case Kind::unit: return mark_unit(event);
    case Kind::trim: return memory_->trim();
    case Kind::peak_reset: return memory_->reset_peak();
    case Kind::segment_unmap:
    case Kind::free_completed:
    case Kind::host_wait:
    case Kind::callback: return;  // the allocator's own doing
  }
}

void OwnReplay::wait(const AllocatorEvent& event) {
  const detail::IssuedWait issued{event.stream, event.ticket, static_cast<StreamId>(event.address), event.bytes};
  if (issued.consumer == issued.producer && issued.at == 0) {
    lost_waits_ = true;
  } else if ((event.flags & AllocatorEvent::kOwnWait) == 0) {
    backend_->add_wait(issued);
    if (!compares_) return;
    detail::AllocatorState& state = detail::AllocatorState::of(*memory_);
    const detail::AllocatorState::Lock lock(state.mutex);
    state.note_waits();  // here, as recorded: the call that did so may have failed, and left no event
  } else if (as_recorded_ && issued.consumer != detail::StreamOrder::kHost) {
    backend_->expect_own_wait(issued);
  }
}

AllocationRequest OwnReplay::request_of(const AllocatorEvent& event) const {
  AllocationRequest request;
  request.bytes = event.requested_bytes;
  std::tie(request.category, request.state) = category_of(event.tag);
  request.name = names_[event.name];
  request.unit = event.unit;
  request.region = event.region;
  return request;
}

void OwnReplay::allocate(const AllocatorEvent& event) {
  backend_->set_issued(event.stream, event.ticket);
  const StreamRef stream = backend_->stream(event.stream);
  std::optional<Buffer> buffer;
  if (!event.is_slot()) {
    buffer = memory_->try_allocate(request_of(event), stream);
  } else {
    const std::size_t offset = event.address - layout_.slot_base;
    if (as_recorded_ || offset + event.requested_bytes <= slot_bytes_) {
      buffer = memory_->allocate_slot(offset, request_of(event), stream);
    }
  }
  end_call();
  if (!buffer) return count_refusal(event);
  if (live_.size() <= event.allocation) live_.resize(event.allocation + 1);
  Live& live = live_[event.allocation];
  live.stream = event.stream;
  live.shares.push_back({std::move(*buffer), event.address, event.requested_bytes, event.name, true});
}

void OwnReplay::count_refusal(const AllocatorEvent& event) {
  ++refused_;
  if (!first_refused_) first_refused_ = event.number;
}

/// Only where it was recorded: elsewhere the program may have been told that there is room, and nobody knows what it
/// would have done with it.
void OwnReplay::refuse_again(const AllocatorEvent& event) {
  if (!as_recorded_) return;
  if (event.is_slot()) {
    try {
      memory_->commit_slots(event.requested_bytes);
    } catch (const OutOfMemory&) {  // as recorded
    }
  } else {
    static_cast<void>(memory_->try_allocate(request_of(event), backend_->stream(event.stream)));
  }
  end_call();
}

void OwnReplay::commit_slots(const AllocatorEvent& event) {
  try {
    memory_->commit_slots(event.bytes);
    slot_bytes_ = event.bytes;
  } catch (const OutOfMemory&) {
    count_refusal(event);
  }
  end_call();
}

OwnReplay::Live* OwnReplay::find(const AllocatorEvent& event) {
  const bool known = event.allocation < live_.size() && !live_[event.allocation].shares.empty();
  if (known) return &live_[event.allocation];
  if (refused_ == 0) refuse(event, "names an allocation that is not live");
  return nullptr;
}

void OwnReplay::free(const AllocatorEvent& event) {
  backend_->set_mark(event.stream, event.ticket);
  if (Live* live = find(event)) {
    if (live->shares.size() != 1) refuse(event, "frees a storage that has views");
    Buffer& last = live->shares.front().buffer;
    for (const auto& use : uses_) last.last_use(backend_->stream(use.first), use.second);
    live->shares.clear();
  }
  uses_.clear();
}

void OwnReplay::view(const AllocatorEvent& event) {
  Live* live = find(event);
  if (live == nullptr) return;
  const auto holds = [&](const Share& share) {
    return share.address <= event.address && event.address + event.bytes <= share.address + share.bytes;
  };
  const auto of = std::ranges::find_if(live->shares, holds);
  if (of == live->shares.end()) refuse(event, "views bytes that no share has");
  Buffer buffer = of->buffer.view(event.address - of->address, event.bytes, names_[event.name]);
  live->shares.push_back({std::move(buffer), event.address, event.bytes, event.name, false});
}

/// The last share goes with the free that follows.
void OwnReplay::drop_view(const AllocatorEvent& event) {
  Live* live = find(event);
  if (live == nullptr || live->shares.size() == 1) return;
  const auto same = [&](const Share& share) {
    return share.address == event.address && share.bytes == event.bytes && share.name == event.name;
  };
  const auto gone = std::ranges::find_if(live->shares, same);
  if (gone == live->shares.end()) refuse(event, "drops a view that is not there");
  live->shares.erase(gone);
}

void OwnReplay::retag(const AllocatorEvent& event) {
  Live* live = find(event);
  if (live == nullptr) return;
  const auto [category, state] = category_of(event.tag);
  Buffer& buffer = live->shares.front().buffer;
  if (event.ticket == 0 && event.stream == live->stream) return buffer.retag(category, state);
  backend_->set_issued(event.stream, event.ticket);
  buffer.retag(category, state, backend_->stream(event.stream));
}

void OwnReplay::mark_unit(const AllocatorEvent& event) {
  const auto& [phase, operation] = marks_[event.name];
  memory_->mark_unit(event.unit, phase.c_str(), operation.c_str());
}

void OwnReplay::run_inside() {
  const std::uint64_t waits = detail::AllocatorState::of(*memory_).stats.host_waits;
  if (waits == std::exchange(windows_run_, waits) || windows_.empty()) return;  // one wait may be for several streams
  const std::vector<AllocatorEvent> events = std::move(windows_.front());
  windows_.pop_front();
  for (const AllocatorEvent& event : events) execute(event);
}

/// Its answer is whether it freed anything.
bool OwnReplay::asked(std::size_t /*wanted_bytes*/) {
  if (windows_.empty()) return false;
  const std::vector<AllocatorEvent> events = std::move(windows_.front());
  windows_.pop_front();
  for (const AllocatorEvent& event : events) execute(event);
  return !events.empty();
}

void OwnReplay::end_call() {
  backend_->end_call();
  windows_.clear();
  asked_ = 0;
}

}  // namespace headroom::bench
