#include "replay/replay.hpp"

#include "replay/policy.hpp"
#include "replay/renumbering.hpp"
#include "runtime/memory/allocator_state.hpp"

#include <algorithm>
#include <ctime>
#include <numeric>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;
constexpr std::size_t kPiece = 1024;                // events between two looks at free memory
constexpr std::size_t kLog = std::size_t{1} << 12;  // events: soon full, as the log of a long run is

/// What a policy does with events, and how it stands.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;
  virtual void run(std::span<const AllocatorEvent> events, std::span<const std::string> names) = 0;
  [[nodiscard]] virtual std::size_t reserved_bytes() const = 0;
  virtual void visit_free(const std::function<void(std::size_t)>& visit) const = 0;
  virtual void finish(ReplayFigures& figures) const = 0;
};

class OwnSubject final : public Subject {
 public:
  OwnSubject(const RecordingInfo& info, std::size_t limit_bytes)
      : replay_(info, {.limit_bytes = limit_bytes, .event_capacity = kLog}) {}

  void run(std::span<const AllocatorEvent> events, std::span<const std::string> names) override {
    replay_.run(events, names);
  }
  [[nodiscard]] std::size_t reserved_bytes() const override { return state().stats.reserved_bytes.current; }
  void visit_free(const std::function<void(std::size_t)>& visit) const override {
    for (const detail::Arena& arena : state().arenas) {
      const detail::BlockPool& pool = arena.pool;
      for (auto i = pool.first(); i != detail::BlockPool::kNone; i = pool[i].after) {
        if (pool[i].state == detail::BlockPool::State::free) visit(pool[i].bytes);
      }
    }
  }
  void finish(ReplayFigures& figures) const override {
    const MemoryStatistics memory = replay_.memory().statistics();
    figures.live_peak = memory.active_bytes.peak;
    figures.reserved_peak = memory.reserved_bytes.peak;
    figures.regions = memory.regions;
    for (const RegionStatistics& region : memory.regions) figures.segments += region.reserved_bytes.peak > 0 ? 1 : 0;
    figures.refused = replay_.refused();
    figures.first_refused = replay_.first_refused();
  }

 private:
  [[nodiscard]] const detail::AllocatorState& state() const { return detail::AllocatorState::of(replay_.memory()); }
  OwnReplay replay_;
};

class PolicySubject final : public Subject {
 public:
  explicit PolicySubject(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  void run(std::span<const AllocatorEvent> events, std::span<const std::string> /*names*/) override {
    for (const AllocatorEvent& event : events) {
      if (event.kind == Kind::alloc) {
        allocate(event);
      } else if (event.kind == Kind::free_completed) {
        free(static_cast<std::uint32_t>(event.allocation));
      }
    }
  }
  [[nodiscard]] std::size_t reserved_bytes() const override { return policy_->reserved_bytes(); }
  void visit_free(const std::function<void(std::size_t)>& visit) const override { policy_->visit_free(visit); }
  void finish(ReplayFigures& figures) const override {
    figures.live_peak = live_peak_;
    figures.reserved_peak = reserved_peak_;
    figures.segments = policy_->segments();
    figures.refused = refused_;
    figures.first_refused = first_refused_;
  }

 private:
  void allocate(const AllocatorEvent& event) {
    const auto number = static_cast<std::uint32_t>(event.allocation);
    if (event.requested_bytes == 0) return;
    if (!policy_->allocate(number, event.requested_bytes, event.stream, event.tag)) {
      ++refused_;
      if (!first_refused_) first_refused_ = event.number;
      return;
    }
    if (sizes_.size() <= number) sizes_.resize(number + std::size_t{1});
    sizes_[number] = TorchSizes::rounded(event.requested_bytes);
    live_ += sizes_[number];
    live_peak_ = std::max(live_peak_, live_);
    reserved_peak_ = std::max(reserved_peak_, policy_->reserved_bytes());
  }
  void free(std::uint32_t number) {
    if (number >= sizes_.size() || sizes_[number] == 0) return;
    live_ -= std::exchange(sizes_[number], 0);
    policy_->free(number);
  }

  std::unique_ptr<Policy> policy_;
  std::vector<std::size_t> sizes_;  // by number; 0: not live
  std::size_t live_ = 0, live_peak_ = 0, reserved_peak_ = 0;
  std::uint64_t refused_ = 0;
  std::optional<std::uint64_t> first_refused_;
};

std::unique_ptr<Subject> make_subject(ReplayPolicy policy, const RecordingInfo& info, std::size_t limit_bytes) {
  if (policy == ReplayPolicy::ours) return std::make_unique<OwnSubject>(info, limit_bytes);
  return std::make_unique<PolicySubject>(policy == ReplayPolicy::native ? make_native_policy(limit_bytes)
                                                                        : make_expandable_policy(limit_bytes));
}

/// Calls `run` with pieces that end before a step's mark, or after kPiece events.
template <class Run>
void in_pieces(std::span<const AllocatorEvent> events, const Run& run) {
  while (!events.empty()) {
    std::size_t end = 1;
    while (end < events.size() && end < kPiece && events[end].kind != Kind::step) ++end;
    run(events.first(end));
    events = events.subspan(end);
  }
}

/// Free memory, looked at now and then.
class FreeSamples {
 public:
  void look(const Subject& subject) {
    double sum = 0, squares = 0, largest = 0;
    subject.visit_free([&](std::size_t bytes) {
      const auto size = static_cast<double>(bytes);
      sum += size;
      squares += size * size;
      largest = std::max(largest, size);
    });
    if (sum == 0) return;
    ++count_;
    split_ += (sum - largest) / sum;
    concentration_ += squares / (sum * sum);
  }
  void write(ReplayFigures& figures) const {
    if (count_ == 0) return;
    figures.fragmentation_free = split_ / count_;
    figures.free_concentration = concentration_ / count_;
  }

 private:
  double count_ = 0, split_ = 0, concentration_ = 0;
};

void write_growth(ReplayFigures& figures) {
  constexpr std::size_t kDriftFrom = 20;
  const std::vector<std::size_t>& reserved = figures.reserved_at_steps;
  if (reserved.size() < 3) return;
  const std::size_t after = std::min<std::size_t>(10, reserved.size() / 2);
  figures.growth = ReplayGrowth{static_cast<std::int64_t>(after), static_cast<std::int64_t>(reserved.back()) -
                                                                      static_cast<std::int64_t>(reserved[after])};
  if (reserved.size() <= kDriftFrom + 1 || reserved[kDriftFrom] == 0) return;
  figures.drift = static_cast<double>(reserved.back()) / static_cast<double>(reserved[kDriftFrom]) - 1;
}

/// Of this thread: what others do meanwhile is no part of it.
double processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double timed_run(const ReplaySource& source, ReplayPolicy policy, std::size_t limit_bytes) {
  const std::unique_ptr<Subject> subject = make_subject(policy, source.info, limit_bytes);
  Renumbering renumbering;
  double sum = 0;
  source.read([&](std::span<const AllocatorEvent> events, std::span<const std::string> names) {
    in_pieces(events, [&](std::span<const AllocatorEvent> piece) {
      const std::span<const AllocatorEvent> renumbered = renumbering.apply(piece);
      const double start = processor_ns();
      subject->run(renumbered, names);
      sum += processor_ns() - start;
    });
  });
  return sum;
}

}  // namespace

const char* name_of(ReplayPolicy policy) noexcept {
  switch (policy) {
    case ReplayPolicy::ours: return "ours";
    case ReplayPolicy::native: return "native";
    case ReplayPolicy::expandable: break;
  }
  return "expandable";
}

ReplaySource replay_source(const std::string& path) {
  ReplaySource source;
  source.info = RecordingReader(path).info();
  source.read = [path](const ReplaySource::Take& take) {
    RecordingReader reader(path);
    while (reader.next()) {
      if (!reader.events().empty()) take(reader.events(), reader.names());
    }
    return reader.statistics();
  };
  return source;
}

ReplaySource replay_source(const Recording& recording) {
  ReplaySource source;
  source.info = recording.info;
  source.read = [&recording](const ReplaySource::Take& take) {
    constexpr std::size_t kChunk = 4096;
    for (std::span<const AllocatorEvent> left(recording.events); !left.empty();) {
      const std::size_t count = std::min(kChunk, left.size());
      take(left.first(count), recording.names);
      left = left.subspan(count);
    }
    return recording.statistics;
  };
  return source;
}

ExactReplay replay_exactly(const ReplaySource& source) {
  OwnReplay replay(source.info, {.limit_bytes = 0, .compare = true});
  Renumbering renumbering;
  ExactReplay result;
  const NamedStatistics recorded =
      source.read([&](std::span<const AllocatorEvent> events, std::span<const std::string> names) {
        replay.expect(events);
        replay.run(renumbering.apply(events), names);
        result.events += events.size();
      });
  result.lost_waits = replay.lost_waits();
  result.difference = replay.difference();
  if (!result.difference) result.difference = replay.finish_comparison(recorded);
  return result;
}

ReplayFigures replay(const ReplaySource& source, ReplayPolicy policy, const ReplayOptions& options) {
  ReplayFigures figures;
  figures.policy = policy;
  figures.limit_bytes = options.limit_bytes == 0 ? source.info.layout.limit_bytes : options.limit_bytes;
  const std::unique_ptr<Subject> subject = make_subject(policy, source.info, figures.limit_bytes);
  Renumbering renumbering;
  FreeSamples samples;
  source.read([&](std::span<const AllocatorEvent> events, std::span<const std::string> names) {
    in_pieces(renumbering.apply(events), [&](std::span<const AllocatorEvent> piece) {
      if (piece.front().kind == Kind::step) figures.reserved_at_steps.push_back(subject->reserved_bytes());
      for (const AllocatorEvent& event : piece) {
        figures.operations += event.kind == Kind::alloc || event.kind == Kind::free_requested ? 1 : 0;
      }
      subject->run(piece, names);
      samples.look(*subject);
    });
  });
  subject->finish(figures);
  samples.write(figures);
  write_growth(figures);
  if (figures.reserved_peak > 0) {
    figures.fragmentation_peak =
        1 - static_cast<double>(figures.live_peak) / static_cast<double>(figures.reserved_peak);
  }
  double fastest = 0;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const double ns = timed_run(source, policy, figures.limit_bytes);
    if (repeat == 0 || ns < fastest) fastest = ns;
  }
  if (figures.operations > 0) figures.ns_per_operation = fastest / static_cast<double>(figures.operations);
  return figures;
}

}  // namespace headroom::bench
