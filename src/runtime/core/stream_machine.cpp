#include "runtime/core/stream_machine.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/core/exception_text.hpp"

namespace headroom::detail {

StreamMachine::StreamMachine(const ExecutorFactory& make_executor) : table_(trace_), executor_(make_executor(table_)) {}

StreamMachine::~StreamMachine() {
  for (StreamId id = 0; id < table_.size(); ++id) destroy_stream(id);
}

StreamId StreamMachine::create_stream(const StreamOptions& options) {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  StreamQueue& queue = table_.open(options);
  order_.add_stream();
  queue.closed = true;  // for good, if the executor fails
  executor_->opened(queue);
  queue.closed = false;
  return queue.info.id;
}

void StreamMachine::destroy_stream(StreamId stream) noexcept {
  std::unique_lock<std::mutex> lock(table_.mutex);
  StreamQueue& queue = table_.at(stream);
  if (std::exchange(queue.closed, true)) return;
  executor_->wait(lock, queue, queue.issued);
  order_.add_host_wait(stream, queue.issued);
  waits_.add({StreamOrder::kHost, 0, stream, queue.issued});
  order_.forget(stream);
  queue.ended = true;
  waits_.note_end();
  const std::exception_ptr lost = queue.error;
  lock.unlock();
  executor_->closed(queue);
  if (lost)
    spdlog::error("stream {} was destroyed with an error that nobody collected: {}", queue.info.name, text_of(lost));
}

Ticket StreamMachine::append(std::unique_lock<std::mutex>& lock, StreamQueue& queue, QueueItem item) {
  item.issued_ns = executor_->now_ns();
  queue.items.push_back(std::move(item));
  const Ticket ticket = ++queue.issued;
  lock.unlock();
  executor_->submitted(queue);
  return ticket;
}

StreamQueue& StreamMachine::open_queue(StreamId stream) const {
  StreamQueue& queue = table_.at(stream);
  HEADROOM_EXPECT(!queue.closed, "stream " + queue.info.name + " is destroyed: it takes no more work");
  return queue;
}

StreamQueue& StreamMachine::check_issued(StreamId stream, Ticket ticket) const {
  StreamQueue& queue = table_.at(stream);
  HEADROOM_EXPECT(ticket <= queue.issued, "ticket " + std::to_string(ticket) + " of stream " + queue.info.name +
                                              " was not issued yet; the last is " +
                                              std::to_string(queue.issued.load()));
  return queue;
}

Ticket StreamMachine::enqueue(StreamId stream, Operation operation) {
  QueueItem item;
  item.operation = std::move(operation);
  std::unique_lock<std::mutex> lock(table_.mutex);
  return append(lock, open_queue(stream), std::move(item));
}

Ticket StreamMachine::mark(StreamId stream) {
  QueueItem item;
  item.kind = QueueItem::Kind::mark;
  std::unique_lock<std::mutex> lock(table_.mutex);
  StreamQueue& queue = open_queue(stream);
  if (!queue.items.empty()) return append(lock, queue, std::move(item));
  ++queue.issued;  // an idle stream needs no worker to say that it is idle
  return ++queue.completed;
}

Ticket StreamMachine::issued(StreamId stream) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  return table_.at(stream).issued;
}

const std::atomic<Ticket>& StreamMachine::issued_counter(StreamId stream) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  return table_.at(stream).issued;
}

bool StreamMachine::complete(StreamId stream, Ticket ticket) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  return check_issued(stream, ticket).completed >= ticket;
}

void StreamMachine::wait(StreamId consumer, StreamId producer, Ticket ticket) {
  std::unique_lock<std::mutex> lock(table_.mutex);
  check_issued(producer, ticket);
  if (ticket == 0 || consumer == producer) return;
  QueueItem item;
  item.kind = QueueItem::Kind::wait;
  item.operation.name = "wait";
  item.producer = producer;
  item.producer_ticket = ticket;
  StreamQueue& queue = open_queue(consumer);
  order_.add_wait(consumer, queue.issued + 1, producer, ticket);
  waits_.add({consumer, queue.issued + 1, producer, ticket});
  append(lock, queue, std::move(item));
}

Ticket StreamMachine::knows(StreamId consumer, StreamId producer) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  if (consumer == producer) return table_.at(consumer).issued;
  const StreamQueue& queue = table_.at(producer);
  return queue.ended ? queue.issued.load() : order_.knows(table_.at(consumer).info.id, producer);
}

Ticket StreamMachine::seen(StreamId stream) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  return order_.seen(stream);
}

void StreamMachine::synchronize(StreamId stream, Ticket ticket) {
  std::unique_lock<std::mutex> lock(table_.mutex);
  StreamQueue& queue = check_issued(stream, ticket);
  executor_->wait(lock, queue, ticket);
  order_.add_host_wait(stream, ticket);
  waits_.add({StreamOrder::kHost, 0, stream, ticket});
  if (!queue.error || queue.error_ticket > ticket) return;
  const std::exception_ptr error = std::exchange(queue.error, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

bool StreamMachine::failed(StreamId stream) const {
  const std::lock_guard<std::mutex> lock(table_.mutex);
  return table_.at(stream).poisoned;
}

void StreamMachine::host_wait(const HostWork& work) { executor_->host_wait(work); }

}  // namespace headroom::detail
