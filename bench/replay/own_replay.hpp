#pragma once

#include <headroom/recording.hpp>

#include "replay/replay_backend.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headroom::bench {

/// Where a replay and its recording part.
struct Difference {
  std::uint64_t event = 0;
  std::string expected, found;
};

/// Recorded events through Headroom's own allocator: what a program did is done again, in the order in which it
/// happened; what the allocator did is left to it.
///
/// With the recorded limit it must do the same, which `compare` checks, event by event. With another one the program's
/// requests are the same, and requests that are refused now are counted, and not made up for.
class OwnReplay {
 public:
  struct Options {
    std::size_t limit_bytes = 0;  ///< 0: as recorded.
    bool compare = false;
    std::size_t event_capacity = std::size_t{1} << 18;
  };
  OwnReplay(const RecordingInfo& info, const Options& options);
  ~OwnReplay();
  OwnReplay(const OwnReplay&) = delete;
  OwnReplay& operator=(const OwnReplay&) = delete;

  /// The next events as recorded, to compare with; to be given before they are run.
  void expect(std::span<const AllocatorEvent> recorded);
  /// The next events, renumbered; `names`: of the events so far, those given before among them. Throws: InvalidInput
  /// where an event cannot follow those before it.
  void run(std::span<const AllocatorEvent> events, std::span<const std::string> names);

  [[nodiscard]] const CachingAllocator& memory() const noexcept { return *memory_; }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  [[nodiscard]] std::optional<std::uint64_t> first_refused() const noexcept { return first_refused_; }
  /// The first one, if any. Compared: all events so far but times.
  [[nodiscard]] const std::optional<Difference>& difference() const noexcept { return difference_; }
  /// After the last event: what is left of the log on one side only, or the first statistic that is not as `recorded`.
  [[nodiscard]] std::optional<Difference> finish_comparison(const NamedStatistics& recorded) const;
  /// True where the log does not say all that decisions depended on.
  [[nodiscard]] bool lost_waits() const noexcept { return lost_waits_; }

 private:
  struct Share {
    Buffer buffer;
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t name = 0;
    bool first = false;  ///< The allocation itself, not a view.
  };
  struct Live {
    StreamId stream = 0;
    std::vector<Share> shares;
  };

  void take_names(std::span<const std::string> names);
  void step(const AllocatorEvent& event);
  void execute(const AllocatorEvent& event);
  void wait(const AllocatorEvent& event);
  void allocate(const AllocatorEvent& event);
  void refuse_again(const AllocatorEvent& event);
  void commit_slots(const AllocatorEvent& event);
  void free(const AllocatorEvent& event);
  void view(const AllocatorEvent& event);
  void drop_view(const AllocatorEvent& event);
  void retag(const AllocatorEvent& event);
  void mark_unit(const AllocatorEvent& event);
  [[nodiscard]] Live* find(const AllocatorEvent& event);
  [[nodiscard]] AllocationRequest request_of(const AllocatorEvent& event) const;
  void count_refusal(const AllocatorEvent& event);
  void run_inside();
  bool asked(std::size_t wanted_bytes);
  void end_call();
  void compare();
  [[nodiscard]] bool is_same(const AllocatorEvent& expected, const AllocatorEvent& found) const;

  bool as_recorded_, compares_;
  AllocatorLayout layout_;
  std::shared_ptr<ReplayBackend> backend_;
  std::unique_ptr<CachingAllocator> memory_;
  std::deque<std::string> names_;                          ///< In place: the log keeps views of them.
  std::deque<std::pair<std::string, std::string>> marks_;  ///< Phase and operation, by name.
  std::vector<Live> live_;                                 ///< By number.
  std::vector<std::pair<StreamId, Ticket>> uses_;          ///< Of the next free.
  std::deque<std::vector<AllocatorEvent>> windows_;        ///< What goes inside the next call's waits.
  std::uint64_t windows_run_ = 0;                          ///< Host waits whose window was run.
  int callbacks_ = 0, asked_ = 0;  ///< Pressure callbacks: as many as were asked in one call; in this call.
  std::size_t slot_bytes_ = 0;
  std::uint64_t refused_ = 0;
  std::optional<std::uint64_t> first_refused_;
  std::deque<AllocatorEvent> expected_;  ///< Recorded, not compared yet.
  std::uint64_t compared_ = 0;
  std::vector<std::string> found_names_;
  std::optional<Difference> difference_;
  bool lost_waits_ = false;
};

}  // namespace headroom::bench
