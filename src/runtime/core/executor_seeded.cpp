#include <algorithm>
#include <array>
#include <random>
#include <thread>
#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"

namespace headroom::detail {
namespace {

/// How one wait is served. `lazy`: only the head that the awaited ticket needs next, so that whatever was not ordered
/// before it comes too late. `eager`: anything else first, by random priorities, and the awaited stream last, so that
/// whatever was not ordered after it comes too early. `any`: each step draws one of all that can run.
enum class Mood : std::uint8_t { lazy, eager, any };

class SeededExecutor final : public StreamExecutor {
 public:
  SeededExecutor(StreamTable& table, std::uint64_t seed) : table_(table), random_(seed) {}

  [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock_.now_ns(); }

  void opened(StreamQueue& /*queue*/) override { priorities_.push_back(random_()); }
  void submitted(StreamQueue& /*queue*/) noexcept override {}
  void closed(StreamQueue& /*queue*/) noexcept override {}

  void wait(std::unique_lock<std::mutex>& lock, StreamQueue& queue, Ticket ticket) override {
    const Mood mood = draw_mood();
    while (queue.completed < ticket) {
      if (pumping_) {
        HEADROOM_EXPECT(pumper_ != std::this_thread::get_id(), "an operation must not wait for a stream");
        step_ended_.wait(lock);
      } else if (StreamQueue* next = pick(&queue, mood)) {
        run(lock, *next);
      } else {
        rest_on_blocked(lock);
      }
    }
  }

  void host_wait(const HostWork& work) override {
    while (work.poll() == Progress::blocked) {
      std::unique_lock<std::mutex> lock(table_.mutex);
      StreamQueue* next = pumping_ ? nullptr : pick(nullptr, Mood::any);
      if (next != nullptr) {
        run(lock, *next);
      } else {
        blocked_.clear();
        lock.unlock();
        table_.rest(work.pause);
      }
    }
  }

 private:
  Mood draw_mood() { return std::array{Mood::lazy, Mood::eager, Mood::any}.at(random_() % 3); }

  [[nodiscard]] bool ready(const StreamQueue& queue) const {
    return table_.runnable(queue) && std::find(blocked_.begin(), blocked_.end(), queue.info.id) == blocked_.end();
  }

  /// A stream whose head can run and did not just say blocked; or nullptr.
  StreamQueue* pick(StreamQueue* awaited, Mood mood) {
    if (mood == Mood::lazy) {
      StreamQueue* needed = awaited;
      while (!table_.runnable(*needed)) needed = &table_.at(needed->items.front().producer);
      if (ready(*needed)) return needed;  // else it depends on a peer, who may need any other stream of ours
    }
    std::vector<StreamQueue*> able;
    for (StreamId id = 0; id < table_.size(); ++id) {
      if (ready(table_.at(id))) able.push_back(&table_.at(id));
    }
    if (able.empty()) return nullptr;
    StreamQueue* const drawn = able[random_() % able.size()];
    if (mood == Mood::any) return drawn;
    if (random_() % 8 == 0) priorities_[drawn->info.id] = random_();
    const auto rank = [&](const StreamQueue* queue) {
      return std::make_pair(queue != awaited, priorities_[queue->info.id]);
    };
    return *std::max_element(able.begin(), able.end(),
                             [&](const StreamQueue* a, const StreamQueue* b) { return rank(a) < rank(b); });
  }

  void run(std::unique_lock<std::mutex>& lock, StreamQueue& queue) {
    QueueItem& head = queue.items.front();
    std::exception_ptr error;
    Progress progress = Progress::done;
    if (head.kind == QueueItem::Kind::operation) {
      const bool skip = queue.poisoned;
      begin_step(lock);
      if (!skip) {
        if (head.start_ns < 0) head.start_ns = now_ns();
        try {
          progress = advance(head.operation);
        } catch (...) {
          error = std::current_exception();
        }
      }
      if (progress == Progress::done) release(head.operation);
      end_step(lock);
    }
    if (progress == Progress::blocked) {
      blocked_.push_back(queue.info.id);
    } else {
      table_.finish_head(queue, now_ns(), error);
      blocked_.clear();
    }
    step_ended_.notify_all();
  }

  /// Every runnable head depends on somebody else: gives way on one of them, then polls all again.
  void rest_on_blocked(std::unique_lock<std::mutex>& lock) {
    HEADROOM_EXPECT(!blocked_.empty(), "a stream is waited for, but no stream has work that can run");
    StreamQueue& queue = table_.at(blocked_[random_() % blocked_.size()]);
    Operation& operation = queue.items.front().operation;
    std::exception_ptr error;
    begin_step(lock);
    try {
      table_.rest(operation.pause);
    } catch (...) {
      error = std::current_exception();
      release(operation);
    }
    end_step(lock);
    if (error) table_.finish_head(queue, now_ns(), error);
    blocked_.clear();
    step_ended_.notify_all();
  }

  void begin_step(std::unique_lock<std::mutex>& lock) {
    pumping_ = true;
    pumper_ = std::this_thread::get_id();
    lock.unlock();
  }

  void end_step(std::unique_lock<std::mutex>& lock) {
    lock.lock();
    pumping_ = false;
  }

  StreamTable& table_;
  SteadyClock clock_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> priorities_;  // by stream
  std::vector<StreamId> blocked_;          // heads that said blocked since the last progress
  bool pumping_ = false;                   // a host thread is inside an operation
  std::thread::id pumper_;
  std::condition_variable step_ended_;
};

}  // namespace

std::unique_ptr<StreamExecutor> make_seeded_executor(StreamTable& table, std::uint64_t seed) {
  return std::make_unique<SeededExecutor>(table, seed);
}

}  // namespace headroom::detail
