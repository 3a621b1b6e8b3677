#include "collectives/job.hpp"
#include "collectives/local_communicator.hpp"
#include "runtime/core/exception_text.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace headroom {
namespace {

using detail::LocalCommunicator;
using detail::Rendezvous;

/// All ranks of one process: where the n-th set of communicators of one rank meets the n-th of the others.
class LocalWorld {
 public:
  LocalWorld(int size, const CommunicatorOptions& options)
      : size_(size), options_(options), sets_made_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const CommunicatorOptions& options() const noexcept { return options_; }

  [[nodiscard]] std::shared_ptr<Rendezvous> join(int rank, std::chrono::milliseconds deadline) {
    const std::lock_guard lock(mutex_);
    const std::size_t index = sets_made_[static_cast<std::size_t>(rank)]++;
    Meeting& meeting = meetings_[index];
    if (!meeting.rendezvous) {
      meeting.rendezvous = std::make_shared<Rendezvous>(size_, deadline);
      std::erase_if(known_, [](const std::weak_ptr<Rendezvous>& known) { return known.expired(); });
      known_.push_back(meeting.rendezvous);
      if (aborted_) meeting.rendezvous->abort(reason_.c_str());
    }
    std::shared_ptr<Rendezvous> rendezvous = meeting.rendezvous;
    if (++meeting.joined == size_) meetings_.erase(index);
    return rendezvous;
  }

  void abort(const char* reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    aborted_ = true;
    try {
      reason_ = reason;
    } catch (...) {
      reason_.clear();  // No memory for the reason; that it ended is what counts.
    }
    for (const std::weak_ptr<Rendezvous>& known : known_) {
      if (const auto rendezvous = known.lock()) rendezvous->abort(reason);
    }
  }

  [[nodiscard]] bool aborted() {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  struct Meeting {
    std::shared_ptr<Rendezvous> rendezvous;
    int joined = 0;
  };

  const int size_;
  const CommunicatorOptions options_;
  std::mutex mutex_;
  std::vector<std::size_t> sets_made_;       // By rank.
  std::map<std::size_t, Meeting> meetings_;  // Until all ranks have joined.
  std::vector<std::weak_ptr<Rendezvous>> known_;
  bool aborted_ = false;
  std::string reason_;
};

struct LocalJob final : Job::State {
  LocalJob(const HostOptions& host, int rank_, std::shared_ptr<LocalWorld> local)
      : State(Device::host(detail::host_of_rank(host, rank_)), rank_, local->size(), local->options()),
        world_of_ranks(std::move(local)) {}

  [[nodiscard]] const char* launcher() const noexcept override { return world > 1 ? "threads" : "alone"; }
  [[nodiscard]] detail::CommunicatorFactory join_set(std::chrono::milliseconds deadline) override {
    return [here = device, rendezvous = world_of_ranks->join(rank, deadline)](detail::CommunicatorName name,
                                                                              detail::SharedGroup group) {
      return std::make_shared<LocalCommunicator>(here, rendezvous, std::move(group), name);
    };
  }
  void abort(int, const char* reason) noexcept override { world_of_ranks->abort(reason); }

  std::shared_ptr<LocalWorld> world_of_ranks;
};

/// How one rank's body ended.
struct Outcome {
  std::exception_ptr error;
  bool consequence = false;  ///< Of a peer's failure.
};

bool is_consequence(const std::exception_ptr& error, int rank, bool aborted) {
  try {
    std::rethrow_exception(error);
  } catch (const detail::Consequence&) {
    return true;
  } catch (const StepAborted& told) {
    return told.rank() != rank;  // That rank's own error says more, where it has another one.
  } catch (const CommunicatorError&) {
    return aborted;  // Somebody wrapped it.
  } catch (...) {
    return false;
  }
}

Outcome run_rank(int rank, const HostOptions& host, const std::shared_ptr<LocalWorld>& world,
                 const std::function<void(Job&)>& body) {
  try {
    Job job(std::make_shared<LocalJob>(host, rank, world));
    body(job);
    return {};
  } catch (...) {
    // Everything that the body owned is gone, its streams drained: from here on no peer can touch this rank's memory.
    const std::exception_ptr error = std::current_exception();
    Outcome outcome{error, is_consequence(error, rank, world->aborted())};
    world->abort(fmt::format("rank {} failed: {}", rank, detail::text_of(error)).c_str());
    return outcome;
  }
}

void rethrow_first(const std::vector<Outcome>& outcomes) {
  const auto failed = [](const Outcome& outcome) { return outcome.error != nullptr; };
  const auto original = [&](const Outcome& outcome) { return failed(outcome) && !outcome.consequence; };
  auto found = std::find_if(outcomes.begin(), outcomes.end(), original);
  if (found == outcomes.end()) found = std::find_if(outcomes.begin(), outcomes.end(), failed);
  if (found != outcomes.end()) std::rethrow_exception(found->error);
}

}  // namespace

std::shared_ptr<Job::State> detail::make_lone_job(const HostOptions& host, const CommunicatorOptions& options) {
  return std::make_shared<LocalJob>(host, 0, std::make_shared<LocalWorld>(1, options));
}

void run_ranks(int ranks, const HostOptions& host, const CommunicatorOptions& options,
               const std::function<void(Job&)>& body) {
  if (ranks < 1) throw std::logic_error(fmt::format("run_ranks: {} ranks, expected at least 1", ranks));
  spdlog::default_logger_raw();  // Made here, by one thread: rank threads may log, and would make it at the same time.
  const auto world = std::make_shared<LocalWorld>(ranks, options);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    try {
      for (int rank = 1; rank < ranks; ++rank) {
        threads.emplace_back(
            [&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_rank(rank, host, world, body); });
      }
    } catch (...) {
      world->abort("a rank's thread could not be started");
      throw;
    }
    outcomes.front() = run_rank(0, host, world, body);
  }
  rethrow_first(outcomes);
}

}  // namespace headroom
