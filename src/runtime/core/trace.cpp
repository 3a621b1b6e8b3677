#include <headroom/trace.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

#include "runtime/core/record_store.hpp"

namespace headroom {

namespace {

void sort(std::vector<OperationRecord>& records) {
  const auto key = [](const OperationRecord& record) {
    return std::make_tuple(record.start_ns, record.stream, record.ticket);
  };
  std::sort(records.begin(), records.end(),
            [&](const OperationRecord& a, const OperationRecord& b) { return key(a) < key(b); });
}

}  // namespace

struct Trace::State {
  explicit State(std::size_t capacity_) : capacity(capacity_) {}

  template <class Record>
  void add(detail::RecordStore<Record>& records, const Record& record) {
    if (!enabled.load(std::memory_order_relaxed)) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (records.size() >= capacity || !append(records, record)) ++dropped;
  }

  /// False without memory, which counts as full: tracing never fails the work that it watches.
  template <class Record>
  static bool append(detail::RecordStore<Record>& records, const Record& record) noexcept {
    try {
      records.add(record);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  const std::size_t capacity;
  std::atomic<bool> enabled{true};
  mutable std::mutex mutex;
  detail::RecordStore<OperationRecord> operations;
  detail::RecordStore<HostSpan> host_spans;
  std::vector<StreamInfo> streams;
  std::uint64_t dropped = 0;
};

Trace::Trace(std::size_t capacity) : state_(std::make_unique<State>(capacity)) {}
Trace::~Trace() = default;

void Trace::set_enabled(bool enabled) noexcept { state_->enabled.store(enabled, std::memory_order_relaxed); }
bool Trace::enabled() const noexcept { return state_->enabled.load(std::memory_order_relaxed); }

void Trace::add(const OperationRecord& record) { state_->add(state_->operations, record); }
void Trace::add(const HostSpan& span) { state_->add(state_->host_spans, span); }

void Trace::add_stream(const StreamInfo& stream) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->streams.push_back(stream);
}

std::vector<OperationRecord> Trace::operations() const {
  return operations(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

std::vector<OperationRecord> Trace::operations(std::int64_t begin_ns, std::int64_t end_ns) const {
  std::vector<OperationRecord> found;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (std::size_t i = 0; i < state_->operations.size(); ++i) {
      const OperationRecord& record = state_->operations[i];
      if (record.end_ns >= begin_ns && record.start_ns <= end_ns) found.push_back(record);
    }
  }
  sort(found);
  return found;
}

std::vector<HostSpan> Trace::host_spans() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->host_spans.all();
}

std::vector<StreamInfo> Trace::streams() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->streams;
}

std::uint64_t Trace::dropped() const noexcept {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->dropped;
}

TraceRecords Trace::take() {
  detail::RecordStore<OperationRecord> operations;
  detail::RecordStore<HostSpan> host_spans;
  TraceRecords taken;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    std::swap(operations, state_->operations);
    std::swap(host_spans, state_->host_spans);
    taken.dropped = std::exchange(state_->dropped, 0);
  }
  taken.operations = operations.all();
  taken.host_spans = host_spans.all();
  sort(taken.operations);
  return taken;
}

void Trace::reserve(std::size_t times) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->operations.reserve(std::min(state_->capacity, times * state_->operations.size()));
  state_->host_spans.reserve(std::min(state_->capacity, times * state_->host_spans.size()));
}

std::size_t Trace::bytes() const noexcept {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->operations.bytes() + state_->host_spans.bytes();
}

void Trace::clear() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->operations.clear();
  state_->host_spans.clear();
  state_->dropped = 0;
}

}  // namespace headroom
