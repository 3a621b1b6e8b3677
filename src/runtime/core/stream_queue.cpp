#include "runtime/core/stream_queue.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"

namespace headroom::detail {
namespace {

constexpr std::chrono::microseconds kRest{1000};

OperationRecord record_of(const StreamQueue& queue, const QueueItem& item, std::int64_t end_ns) {
  OperationRecord record;
  record.stream = queue.info.id;
  record.ticket = queue.completed + 1;
  record.name = item.operation.name;
  record.unit = item.operation.unit;
  record.issued_ns = item.issued_ns;
  record.end_ns = end_ns;
  if (item.kind == QueueItem::Kind::wait) {
    record.kind = OperationRecord::Kind::wait;
    record.start_ns = std::max(item.issued_ns, queue.last_end_ns);
    record.producer = item.producer;
    record.producer_ticket = item.producer_ticket;
  } else if (item.start_ns < 0) {
    record.kind = OperationRecord::Kind::skipped;
    record.start_ns = end_ns;
  } else {
    record.start_ns = item.start_ns;
  }
  return record;
}

}  // namespace

StreamQueue& StreamTable::open(const StreamOptions& options) {
  auto queue = std::make_unique<StreamQueue>();
  queue->info = StreamInfo{size(), options.role, options.name};
  trace_.add_stream(queue->info);
  streams_.push_back(std::move(queue));
  return *streams_.back();
}

StreamQueue& StreamTable::at(StreamId stream) const {
  HEADROOM_EXPECT(stream < streams_.size(), "stream " + std::to_string(stream) + " does not exist on this device");
  return *streams_[stream];
}

bool StreamTable::runnable(const StreamQueue& queue) const {
  if (queue.items.empty()) return false;
  const QueueItem& head = queue.items.front();
  return head.kind != QueueItem::Kind::wait || at(head.producer).completed >= head.producer_ticket;
}

void StreamTable::finish_head(StreamQueue& queue, std::int64_t end_ns, const std::exception_ptr& error) {
  const QueueItem& head = queue.items.front();
  if (head.kind != QueueItem::Kind::mark) trace_.add(record_of(queue, head, end_ns));
  queue.items.pop_front();
  queue.last_end_ns = end_ns;
  ++queue.completed;
  if (error && !queue.poisoned) {
    queue.poisoned = true;
    queue.error = error;
    queue.error_ticket = queue.completed;
  }
  const auto satisfied = [&](Ticket ticket) { return ticket <= queue.completed; };
  if (std::any_of(queue.awaited.begin(), queue.awaited.end(), satisfied)) queue.changed.notify_all();
  progress.notify_all();
}

void StreamTable::await(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) {
  if (queue.completed >= ticket) return;
  queue.awaited.push_back(ticket);
  queue.changed.wait(lock, [&] { return queue.completed >= ticket; });
  queue.awaited.erase(std::find(queue.awaited.begin(), queue.awaited.end(), ticket));
}

void StreamTable::rest(const std::function<void(std::chrono::microseconds)>& pause) {
  if (pause) {
    pause(kRest);
    return;
  }
  std::unique_lock<std::mutex> lock(mutex);
  progress.wait_for(lock, kRest);
}

Progress advance(Operation& operation) {
  if (operation.poll) return operation.poll();
  if (operation.host) operation.host();
  return Progress::done;
}

void release(Operation& operation) noexcept {
  operation.host = nullptr;
  operation.poll = nullptr;
  operation.pause = nullptr;
  operation.cuda = nullptr;
}

}  // namespace headroom::detail
