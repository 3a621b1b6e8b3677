#include "collectives/host_communicator.hpp"

#include "collectives/communicator_checks.hpp"
#include "runtime/core/backend.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace headroom::detail {
namespace {

CollectiveRequest make_request(CollectiveKind kind, const TensorView& send, const TensorView& recv, int root,
                               int unit) {
  const TensorView& slice = kind == CollectiveKind::reduce_scatter ? recv : send;
  return {.signature = {.numel = slice.numel(), .kind = kind, .dtype = slice.dtype, .root = root, .unit = unit},
          .send = send.as<const std::byte>(),
          .recv = recv.as<std::byte>(),
          .slice_bytes = slice.bytes(),
          .lane = {}};
}

}  // namespace

HostCommunicator::HostCommunicator(Device device, SharedGroup group, CommunicatorName name)
    : device_(std::move(device)), group_(std::move(group)), name_(name) {}

void HostCommunicator::all_gather(TensorView send, TensorView recv, StreamRef stream, int unit) {
  check_all_gather(send, recv, rank(), size());
  enqueue(make_request(CollectiveKind::all_gather, send, recv, -1, unit), stream);
}

void HostCommunicator::reduce_scatter(TensorView send, TensorView recv, StreamRef stream, int unit) {
  check_reduce_scatter(send, recv, rank(), size());
  enqueue(make_request(CollectiveKind::reduce_scatter, send, recv, -1, unit), stream);
}

void HostCommunicator::all_reduce(TensorView buffer, TensorView scratch, StreamRef stream, int unit) {
  check_all_reduce(buffer, scratch, all_reduce_scratch_bytes(buffer.bytes()));
  enqueue(make_request(CollectiveKind::all_reduce, buffer, buffer, -1, unit), stream);
}

void HostCommunicator::broadcast(TensorView buffer, int root, StreamRef stream) {
  check_broadcast(buffer, root, size());
  enqueue(make_request(CollectiveKind::broadcast, buffer, buffer, root, -1), stream);
}

// Each rank sums its chunk in place, while its peers read only their own chunks of the same buffer.
std::size_t HostCommunicator::all_reduce_scratch_bytes(std::size_t) const noexcept { return 0; }

void HostCommunicator::agree(std::span<std::uint64_t> words) {
  check_agree(words.size());
  auto* const data = reinterpret_cast<std::byte*>(words.data());
  run_blocking({.signature = {.numel = static_cast<std::int64_t>(words.size()), .kind = CollectiveKind::agree},
                .send = data,
                .recv = data,
                .slice_bytes = words.size_bytes(),
                .lane = {}});
}

void HostCommunicator::share(std::span<std::byte> bytes, int root) {
  check_share(bytes.size(), root, size());
  const TensorView view{bytes.data(), DType::u8, {static_cast<std::int64_t>(bytes.size()), 1, 1, 1}};
  run_blocking(make_request(CollectiveKind::share, view, view, root, -1));
}

std::function<Progress()> HostCommunicator::counted_poll(const CollectiveRequest& request,
                                                         const std::shared_ptr<Flight>& flight) const {
  return [flight, counters = counters_, wire = wire_bytes(request, rank(), size())] {
    const Progress progress = flight->poll();
    if (progress == Progress::done) {
      counters->sent += wire.sent;
      counters->received += wire.received;
    }
    return progress;
  };
}

void HostCommunicator::enqueue(CollectiveRequest request, StreamRef stream) {
  request.lane = Lane::stream_of(name_, group_->world_rank(0));
  request.signature.sequence = stream_operations_ + 1;
  const std::shared_ptr<Flight> flight = make_flight(request);
  const WireBytes wire = wire_bytes(request, rank(), size());
  Operation operation;
  operation.name = name_of(request.signature.kind);
  operation.unit = request.signature.unit;
  operation.bytes = static_cast<double>(std::max(wire.sent, wire.received));
  operation.poll = counted_poll(request, flight);
  operation.pause = [flight](std::chrono::microseconds most) { flight->pause(most); };
  stream.enqueue(std::move(operation));
  ++stream_operations_;
}

void HostCommunicator::compare(const GroupOptions& options) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();
  Signature signature{.numel = options.shard_ranks, .kind = CollectiveKind::options};
  signature.root = options.one_for_both ? 1 : 0;
  if (options.deadline) signature.unit = static_cast<std::int32_t>(std::min(options.deadline->count(), kLongest));
  wait_for({.signature = signature, .lane = {}});
}

void HostCommunicator::run_blocking(CollectiveRequest request) {
  request.signature.sequence = ++host_operations_;
  wait_for(request);
}

void HostCommunicator::wait_for(CollectiveRequest request) {
  request.lane = Lane::host_of(name_, group_->world_rank(0));
  const std::shared_ptr<Flight> flight = make_flight(request);
  device_.backend().host_wait({.poll = counted_poll(request, flight),
                               .pause = [flight](std::chrono::microseconds most) { flight->pause(most); }});
}

}  // namespace headroom::detail
