#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"

namespace headroom::detail {
namespace {

class ThreadsExecutor final : public StreamExecutor {
 public:
  explicit ThreadsExecutor(StreamTable& table) : table_(table) {}

  [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock_.now_ns(); }

  void opened(StreamQueue& queue) override {
    workers_.emplace_back();  // stays in place where no thread can be had
    workers_.back() = std::thread([this, &queue] { work(queue); });
  }

  void submitted(StreamQueue& queue) noexcept override { queue.submitted.notify_one(); }

  void wait(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) override {
    if (queue.completed >= ticket) return;
    const auto is_caller = [](const std::thread& worker) { return worker.get_id() == std::this_thread::get_id(); };
    HEADROOM_EXPECT(std::none_of(workers_.begin(), workers_.end(), is_caller),
                    "an operation must not wait for a stream");
    StreamTable::await(lock, queue, ticket);
  }

  void closed(StreamQueue& queue) noexcept override {
    std::unique_lock<std::mutex> lock(table_.mutex);
    std::thread worker = std::move(workers_[queue.info.id]);
    lock.unlock();
    queue.submitted.notify_one();
    worker.join();
  }

  void host_wait(const HostWork& work) override {
    while (work.poll() == Progress::blocked) table_.rest(work.pause);
  }

 private:
  void work(StreamQueue& queue) {
    std::unique_lock<std::mutex> lock(table_.mutex);
    for (;;) {
      queue.submitted.wait(lock, [&] { return queue.closed || !queue.items.empty(); });
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
  std::vector<std::thread> workers_;  // by stream
};

}  // namespace

std::unique_ptr<StreamExecutor> make_threads_executor(StreamTable& table) {
  return std::make_unique<ThreadsExecutor>(table);
}

}  // namespace headroom::detail
