#include <thread>
#include <utility>

#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"

namespace headroom::detail {
namespace {

struct Worker {
  std::condition_variable submitted;
  bool stop = false;
  std::thread thread;
};

class ThreadsExecutor final : public StreamExecutor {
 public:
  explicit ThreadsExecutor(StreamTable& table) : table_(table) {}

  [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock_.now_ns(); }

  void opened(StreamQueue& queue) override {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.thread = std::thread([this, &worker, &queue] { work(worker, queue); });
  }

  void submitted(StreamQueue& queue) noexcept override { workers_[queue.info.id]->submitted.notify_one(); }

  void wait(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) override {
    StreamTable::await(lock, queue, ticket);
  }

  void closed(StreamQueue& queue) noexcept override {
    std::unique_lock<std::mutex> lock(table_.mutex);
    const std::unique_ptr<Worker> worker = std::exchange(workers_[queue.info.id], nullptr);
    worker->stop = true;
    worker->submitted.notify_one();
    lock.unlock();
    worker->thread.join();
  }

  void host_wait(const HostWork& work) override {
    while (work.poll() == Progress::blocked) table_.rest(work.pause);
  }

 private:
  void work(Worker& worker, StreamQueue& queue) {
    std::unique_lock<std::mutex> lock(table_.mutex);
    for (;;) {
      worker.submitted.wait(lock, [&] { return worker.stop || !queue.items.empty(); });
      if (queue.items.empty()) return;
      QueueItem& head = queue.items.front();
      std::exception_ptr error;
      if (head.kind == QueueItem::Kind::wait) {
        StreamTable::await(lock, table_.at(head.producer), head.producer_ticket);
      } else if (head.kind == QueueItem::Kind::operation) {
        const bool skip = queue.poisoned;
        lock.unlock();
        if (!skip) error = run(head);
        release(head.operation);
        lock.lock();
      }
      table_.finish_head(queue, now_ns(), error);
    }
  }

  std::exception_ptr run(QueueItem& head) {
    head.start_ns = now_ns();
    try {
      while (advance(head.operation) == Progress::blocked) table_.rest(head.operation.pause);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  StreamTable& table_;
  SteadyClock clock_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by stream
};

}  // namespace

std::unique_ptr<StreamExecutor> make_threads_executor(StreamTable& table) {
  return std::make_unique<ThreadsExecutor>(table);
}

}  // namespace headroom::detail
