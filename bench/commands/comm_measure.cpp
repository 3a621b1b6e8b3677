#include "commands/comm_measure.hpp"

#include "options/agreement.hpp"
#include "report/statistics.hpp"
#include "runtime/core/bf16.hpp"

#include <headroom/kernels.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

namespace headroom::bench {
namespace {

constexpr std::array kCollectives{Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
                                  Collective::broadcast};
using detail::from_bf16;
using detail::to_bf16;

constexpr float kUnset = -100;

// Small whole numbers: sums of them are exact in f32.
float value_of(int rank, std::int64_t index) { return static_cast<float>((index * 7 + rank * 5) % 13 - 6); }

float sum_over_ranks(int world, std::int64_t index) {
  float sum = 0;
  for (int rank = 0; rank < world; ++rank) sum += value_of(rank, index);
  return sum;
}

void store(const TensorView& view, std::int64_t index, float value) {
  if (view.dtype == DType::f32) {
    view.as<float>()[index] = value;
  } else {
    view.as<std::uint16_t>()[index] = to_bf16(value);
  }
}

float load(const TensorView& view, std::int64_t index) {
  return view.dtype == DType::f32 ? view.as<float>()[index] : from_bf16(view.as<std::uint16_t>()[index]);
}

float rounded(DType dtype, float value) { return dtype == DType::f32 ? value : from_bf16(to_bf16(value)); }

/// What one rank's buffer holds before and after a collective. `numel` elements, of which rank r owns the r-th part.
struct Expectation {
  Collective collective;
  int rank, world;
  std::int64_t numel;

  [[nodiscard]] int owner(std::int64_t index) const { return static_cast<int>(index / (numel / world)); }
  [[nodiscard]] float before(std::int64_t index) const {
    switch (collective) {
      case Collective::all_gather: return owner(index) == rank ? value_of(rank, index) : kUnset;
      case Collective::broadcast: return rank == 0 ? value_of(0, index) : kUnset;
      case Collective::reduce_scatter:
      case Collective::all_reduce: break;
    }
    return value_of(rank, index);
  }
  [[nodiscard]] bool is_defined(std::int64_t index) const {
    return collective != Collective::reduce_scatter || owner(index) == rank;
  }
  [[nodiscard]] float after(std::int64_t index) const {
    switch (collective) {
      case Collective::all_gather: return value_of(owner(index), index);
      case Collective::broadcast: return value_of(0, index);
      case Collective::reduce_scatter:
      case Collective::all_reduce: break;
    }
    return sum_over_ranks(world, index);
  }
};

void compare(const Expectation& expectation, const TensorView& view) {
  for (std::int64_t i = 0; i < expectation.numel; ++i) {
    if (!expectation.is_defined(i)) continue;
    const float expected = rounded(view.dtype, expectation.after(i));
    const float found = load(view, i);
    if (found == expected) continue;
    throw CollectiveMismatch(std::string(name_of(expectation.collective))
                                 .append(" of ")
                                 .append(std::to_string(view.bytes()))
                                 .append(" bytes: expected ")
                                 .append(std::to_string(expected))
                                 .append(" in element ")
                                 .append(std::to_string(i))
                                 .append(", found ")
                                 .append(std::to_string(found))
                                 .append("."));
  }
}

/// How often each byte of the larger buffer has to pass a rank's link (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(Collective collective, int world) {
  const double others = static_cast<double>(world - 1) / world;
  switch (collective) {
    case Collective::all_reduce: return 2 * others;
    case Collective::broadcast: return world > 1 ? 1 : 0;
    case Collective::all_gather:
    case Collective::reduce_scatter: break;
  }
  return others;
}

AllocatorOptions allocator_options(const Config& config) {
  AllocatorOptions options;
  options.limit_bytes = config.memory_limit_bytes;
  options.event_capacity = 0;
  return options;
}

}  // namespace

const char* name_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_reduce: return "all_reduce";
    case Collective::broadcast: return "broadcast";
    case Collective::all_gather: break;
  }
  return "all_gather";
}

CommBench::CommBench(const CommandLine& line, const Job& job, Communicator& control)
    : control_(control),
      repeats_(line.comm.repeats),
      dtype_(line.comm.dtype),
      communicators_(job.communicators()),
      memory_(job.device(), allocator_options(line.config)),
      compute_(job.device()),
      tensors_(memory_, compute_) {}

CommBench::Buffers CommBench::make_buffers(std::size_t bytes) const {
  const auto world = static_cast<std::size_t>(control_.size());
  const std::size_t part = std::max<std::size_t>(1, bytes / size_of(dtype_) / world);
  const auto numel = static_cast<std::int64_t>(part * world);
  Buffers buffers;
  buffers.data = tensors_.make("comm.data", Category::communication, -1, {numel, 1, 1, 1}, dtype_);
  const std::size_t data_bytes = buffers.data.view.bytes();
  const std::size_t scratch_bytes = std::max(data_bytes, communicators_.reduce->all_reduce_scratch_bytes(data_bytes));
  buffers.scratch = tensors_.workspace("comm.scratch", -1, scratch_bytes);
  buffers.own = buffers.data.view;
  buffers.own.shape = {static_cast<std::int64_t>(part), 1, 1, 1};
  buffers.own.data =
      buffers.data.view.as<std::byte>() + static_cast<std::size_t>(control_.rank()) * buffers.own.bytes();
  TensorView target = buffers.data.view;
  target.data = buffers.scratch.view.data;
  kernels::copy(buffers.data.view, target, compute_);  // a page that was never written is not read from memory
  return buffers;
}

void CommBench::enqueue(Collective collective, const Buffers& buffers) const {
  const TensorView& data = buffers.data.view;
  switch (collective) {
    case Collective::all_gather: communicators_.gather->all_gather(buffers.own, data, compute_); break;
    case Collective::reduce_scatter: communicators_.reduce->reduce_scatter(data, buffers.own, compute_); break;
    case Collective::all_reduce: communicators_.reduce->all_reduce(data, buffers.scratch.view, compute_); break;
    case Collective::broadcast: communicators_.gather->broadcast(data, 0, compute_); break;
  }
}

void CommBench::verify(Collective collective, const Buffers& buffers) const {
  const TensorView& data = buffers.data.view;
  const Expectation expectation{collective, control_.rank(), control_.size(), data.numel()};
  for (std::int64_t i = 0; i < expectation.numel; ++i) store(data, i, expectation.before(i));
  enqueue(collective, buffers);
  compute_.ref().synchronize();
  run_checked(control_, [&] { compare(expectation, data); });
}

/// As many bytes as the collective has to bring this rank, from this rank's own memory.
void CommBench::copy(Collective collective, const Buffers& buffers) const {
  const int others = control_.size() - 1;
  const bool is_broadcast = collective == Collective::broadcast;
  const int parts = !is_broadcast ? others : control_.rank() == 0 ? 0 : control_.size();
  TensorView target = buffers.data.view;
  target.shape[0] = buffers.own.shape[0] * parts;
  TensorView source = target;
  source.data = buffers.scratch.view.data;
  kernels::copy(source, target, compute_);
  if (collective == Collective::all_reduce) kernels::copy(source, target, compute_);
}

/// Of one call; small ones are enqueued several at once, as a training step would.
std::vector<double> CommBench::seconds(std::size_t bytes, const std::function<void()>& enqueue_one) const {
  constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;
  constexpr std::size_t kMostAtOnce = 16;
  const std::size_t batch = std::clamp(kBytesAtOnce / bytes, std::size_t{1}, kMostAtOnce);
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats_; ++repeat) {
    control_.agree({});  // all ranks begin together
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < batch; ++i) enqueue_one();
    compute_.ref().synchronize();
    const auto elapsed = std::chrono::steady_clock::now() - start;
    std::array<std::uint64_t, 1> slowest{
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count())};
    control_.agree(slowest);
    seconds.push_back(static_cast<double>(slowest[0]) * 1e-9 / static_cast<double>(batch));
  }
  return seconds;
}

CommRow CommBench::measure(Collective collective, const Buffers& buffers) const {
  const std::size_t bytes = buffers.data.view.bytes();
  CommRow row{collective, bytes};
  const auto best_copy = [&] {
    const std::vector<double> copies = seconds(bytes, [&] { copy(collective, buffers); });
    return *std::min_element(copies.begin(), copies.end());
  };
  verify(collective, buffers);
  double copied = best_copy();
  row.seconds = quantile(seconds(bytes, [&] { enqueue(collective, buffers); }), 0.5);
  verify(collective, buffers);
  copied = std::min(copied, best_copy());
  const double on_bus = static_cast<double>(bytes) * bus_factor(collective, control_.size());
  row.algbw = static_cast<double>(bytes) / row.seconds;
  row.busbw = on_bus / row.seconds;
  if (control_.size() > 1) row.memcpy = on_bus / copied;
  return row;
}

std::vector<CommRow> CommBench::measure(std::size_t bytes) {
  std::optional<Buffers> buffers;
  run_checked(control_, [&] { buffers = make_buffers(bytes); });
  std::vector<CommRow> rows;
  for (const Collective collective : kCollectives) rows.push_back(measure(collective, *buffers));
  return rows;
}

}  // namespace headroom::bench
