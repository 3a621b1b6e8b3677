#include <headroom/allocator.hpp>

#include "runtime/memory/allocator_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>
#include <utility>

namespace headroom {
namespace detail {

void AllocatorState::record_use(std::uint32_t allocation, StreamRef stream) {
  const Lock lock(mutex);
  expect_running("record_use");
  expect_stream(stream);
  allocations[allocation].uses.add(stream.id(), kUntilFreed);
}

void AllocatorState::last_use(std::uint32_t allocation, StreamRef stream, Ticket ticket) {
  const Lock lock(mutex);
  expect_running("last_use");
  expect_stream(stream);
  if (ticket > stream.issued()) {
    throw std::logic_error(fmt::format("Buffer::last_use: ticket {} of stream {} was not issued yet; the last is {}",
                                       ticket, stream.id(), stream.issued()));
  }
  if (ticket > 0) allocations[allocation].uses.add(stream.id(), ticket);
}

void AllocatorState::retag(std::uint32_t allocation, Tag tag, const StreamRef* stream) {
  const Lock lock(mutex);
  expect_running("retag");
  Allocation& a = allocations[allocation];
  if (a.tag == tag) return;
  settle_peak();
  stats.tag_bytes[static_cast<std::size_t>(a.tag)] -= a.bytes;
  stats.tag_bytes[static_cast<std::size_t>(tag)] += a.bytes;
  a.tag = tag;
  AllocatorEvent& event = record(AllocatorEvent::Kind::retag, a, now());
  if (stream == nullptr) return;
  event.stream = stream->id();
  event.ticket = stream->issued();
}

Buffer AllocatorState::view(const Buffer& of, std::size_t offset, std::size_t bytes, std::string_view name) {
  const Lock lock(mutex);
  expect_running("view");
  const std::uint32_t id = log.intern(name);
  peaks.prepare(std::size_t{allocations.size()} + views.size() + 1);
  settle_peak();
  const std::uint32_t index = views.add();
  Allocation& a = allocations[of.block_];
  View& view = views[index];
  view.allocation = of.block_;
  view.offset = static_cast<std::size_t>(of.data_ + offset - address(a));
  view.bytes = bytes;
  view.name = id;
  ++a.shares;
  AllocatorEvent& event = record(AllocatorEvent::Kind::view, a, now());
  event.address += view.offset;
  event.bytes = event.requested_bytes = bytes;
  event.name = id;
  view.event = event.number;
  Buffer buffer = hand_out(of.state_, of.block_, of.data_ + offset);
  buffer.bytes_ = bytes;
  buffer.share_ = index + 1;
  return buffer;
}

namespace {
void expect_owner(bool holds, const char* member) {
  if (!holds) throw std::logic_error(fmt::format("Buffer::{} on an empty or moved-from buffer", member));
}
}  // namespace
}  // namespace detail

Buffer::Buffer(Buffer&& other) noexcept
    : state_(std::move(other.state_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      block_(other.block_),
      share_(other.share_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  state_ = std::move(other.state_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  block_ = other.block_;
  share_ = other.share_;
  return *this;
}

Buffer::~Buffer() { reset(); }

void Buffer::reset() noexcept {
  if (!state_) return;
  state_->release(block_, share_);
  state_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

TensorView Buffer::tensor(DType dtype, std::array<std::int64_t, 4> shape) const {
  auto needed = static_cast<std::int64_t>(size_of(dtype));
  bool overflow = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw std::logic_error(fmt::format("Buffer::tensor: extent {} is negative", extent));
    overflow = __builtin_mul_overflow(needed, extent, &needed) || overflow;  // also before an extent of 0
  }
  if (overflow || static_cast<std::size_t>(needed) > bytes_) {
    throw std::logic_error(fmt::format("Buffer::tensor: [{}, {}, {}, {}] of {} does not fit {} bytes", shape[0],
                                       shape[1], shape[2], shape[3], name_of(dtype), bytes_));
  }
  return {data_, dtype, shape};
}

void Buffer::record_use(StreamRef stream) {
  detail::expect_owner(state_ != nullptr, "record_use");
  state_->record_use(block_, stream);
}

void Buffer::last_use(StreamRef stream, Ticket ticket) {
  detail::expect_owner(state_ != nullptr, "last_use");
  state_->last_use(block_, stream, ticket);
}

Buffer Buffer::view(std::size_t offset_bytes, std::size_t bytes, std::string_view name) const {
  detail::expect_owner(state_ != nullptr, "view");
  if (offset_bytes > bytes_ || bytes > bytes_ - offset_bytes) {
    throw std::logic_error(
        fmt::format("Buffer::view '{}': [{}, +{}) is not within {} bytes", name, offset_bytes, bytes, bytes_));
  }
  return state_->view(*this, offset_bytes, bytes, name);
}

void Buffer::retag(Category category, UseState state) {
  detail::expect_owner(state_ != nullptr, "retag");
  state_->retag(block_, tag_of(category, state), nullptr);
}

void Buffer::retag(Category category, UseState state, StreamRef stream) {
  detail::expect_owner(state_ != nullptr, "retag");
  state_->retag(block_, tag_of(category, state), &stream);
}

}  // namespace headroom
