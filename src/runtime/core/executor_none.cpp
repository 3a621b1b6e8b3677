#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"

namespace headroom::detail {
namespace {

/// Every item is complete as soon as it is issued, and no body is called but those of `always`. A wait finds its
/// producer complete.
class NoExecutor final : public StreamExecutor {
 public:
  explicit NoExecutor(StreamTable& table) : table_(table) {}

  [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock_.now_ns(); }

  void opened(StreamQueue& /*queue*/) override { busy_.push_back(false); }
  void closed(StreamQueue& /*queue*/) noexcept override {}

  void submitted(StreamQueue& queue) noexcept override {
    std::unique_lock<std::mutex> lock(table_.mutex);
    if (busy_[queue.info.id]) return;  // whoever completes the stream's items will come to this one
    busy_[queue.info.id] = true;
    while (!queue.items.empty()) {
      QueueItem& head = queue.items.front();
      lock.unlock();
      const std::exception_ptr error = pretend(head);
      lock.lock();
      table_.finish_head(queue, now_ns(), error);
    }
    busy_[queue.info.id] = false;
  }

  /// Another thread may be about to complete it.
  void wait(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) override {
    StreamTable::await(lock, queue, ticket);
  }

  void host_wait(const HostWork& work) override {
    while (work.poll() == Progress::blocked) table_.rest(work.pause);
  }

 private:
  /// Without the mutex: what the operation captured may free buffers.
  static std::exception_ptr pretend(QueueItem& head) noexcept {
    head.start_ns = head.issued_ns;
    std::exception_ptr error;
    try {
      if (head.operation.always) head.operation.host();
    } catch (...) {
      error = std::current_exception();
    }
    release(head.operation);
    return error;
  }

  StreamTable& table_;
  SteadyClock clock_;
  std::vector<bool> busy_;  // by stream
};

}  // namespace

std::unique_ptr<StreamExecutor> make_no_executor(StreamTable& table) { return std::make_unique<NoExecutor>(table); }

}  // namespace headroom::detail
