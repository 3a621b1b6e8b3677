#pragma once

#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

// CONTRACT section 3 a second time, as a training loop with hooks that runs step after step and writes down what it
// does. It shares no code, types or counting rules with src.
namespace headroom::testing::reference {

struct Options {
  std::string backward_prefetch = "none";
  int forward_prefetch = 0;
  int gather_limit = 0, reduction_limit = 0;  ///< 0: off.
  std::set<std::string> keep;
  int accumulate = 1;
  bool single_rank = false;
  std::string strategy = "full_shard";
  bool full_accumulation = false;
  std::set<std::string> frozen;
};

class TrainingLoop {
 public:
  TrainingLoop(std::vector<std::string> forward, std::vector<std::string> backward, Options options)
      : options_(std::move(options)) {
    for (const std::string& unit : forward) forward_.push_back({unit, mark(unit, ".f", forward_)});
    for (const std::string& unit : backward) backward_.push_back({unit, mark(unit, ".b", backward_)});
    if (options_.strategy == "shard_grad_op") options_.keep.insert(forward.begin(), forward.end());
    everything_is_here_ = options_.single_rank || options_.strategy == "no_shard";
  }

  /// Runs one more step and returns its text.
  std::string step() {
    text_.clear();
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      last_micro_ = micro == options_.accumulate - 1;
      write("micro " + std::to_string(micro));
      run_forward();
      run_backward();
    }
    if (!reductions_.empty()) write("wait_reduce " + reductions_.back());
    reductions_.clear();
    write("norm");
    write("vote");
    write("apply");
    ++steps_;
    return text_;
  }

 private:
  struct Visit {
    std::string unit, label;  ///< "h.0", "h.0.f@1"
  };
  struct Release {
    int step;
    std::string label;
  };

  static std::string mark(const std::string& unit, const std::string& phase, const std::vector<Visit>& before) {
    int times = 0;
    for (const Visit& visit : before) times += visit.unit == unit ? 1 : 0;
    return unit + phase + (times == 0 ? "" : "@" + std::to_string(times));
  }

  void write(const std::string& line) { text_ += line + "\n"; }

  void run_forward() {
    std::deque<Visit> to_do(forward_.begin(), forward_.end());
    while (!to_do.empty()) {
      const Visit now = to_do.front();
      to_do.pop_front();
      ensure_gathered(now);
      if (!everything_is_here_) write("wait_gather " + now.label);
      bool soon = false;
      int ahead = 0;
      for (const Visit& next : to_do) {
        if (ahead++ == options_.forward_prefetch) break;
        ensure_gathered(next);
        if (next.unit == now.unit) soon = true;
      }
      write("forward " + now.unit);
      if (!soon && options_.keep.count(now.unit) == 0) reshard(now);
    }
  }

  void run_backward() {
    std::map<std::string, int> left;
    for (const Visit& visit : backward_) ++left[visit.unit];
    std::deque<Visit> to_do(backward_.begin(), backward_.end());
    while (!to_do.empty()) {
      const Visit now = to_do.front();
      to_do.pop_front();
      const bool final_visit = --left[now.unit] == 0;
      const bool keeps = options_.keep.count(now.unit) != 0;
      const bool prefetches = options_.backward_prefetch != "none" && !to_do.empty();
      ensure_gathered(now);
      if (!keeps && !everything_is_here_) write("wait_gather " + now.label);
      if (prefetches && options_.backward_prefetch == "pre") ensure_gathered(to_do.front());
      hold_back_reductions();
      write("backward " + now.unit);
      const bool needed_next = prefetches && to_do.front().unit == now.unit;
      if (keeps ? final_visit : !needed_next) reshard(now);
      if (prefetches && options_.backward_prefetch == "post") ensure_gathered(to_do.front());
      if (final_visit) synchronize_gradient(now.unit);
    }
  }

  void synchronize_gradient(const std::string& unit) {
    if (options_.single_rank || options_.frozen.count(unit) != 0) return;
    if (options_.full_accumulation && !last_micro_) return;
    if (options_.strategy == "no_shard") {
      write("all_reduce " + unit);
    } else {
      write("reduce_scatter " + unit);
      if (options_.strategy == "hybrid" && last_micro_) write("all_reduce " + unit);
    }
    reductions_.push_back(unit);
  }

  void ensure_gathered(const Visit& visit) {
    if (everything_is_here_ || !full_.insert(visit.unit).second) return;
    hold_back_gathers();
    write("all_gather " + visit.label);
  }

  void reshard(const Visit& visit) {
    if (everything_is_here_) return;
    if (full_.erase(visit.unit) == 0) throw std::logic_error("released twice: " + visit.label);
    write("release " + visit.label);
    releases_.push_back({steps_, visit.label});
  }

  void hold_back_gathers() {
    if (options_.gather_limit == 0) return;
    std::string line;
    while (static_cast<int>(releases_.size()) >= options_.gather_limit) {
      const Release& oldest = releases_.front();
      line = "throttle " + oldest.label + std::string(static_cast<std::size_t>(steps_ - oldest.step), '\'');
      releases_.pop_front();
    }
    if (!line.empty()) write(line);
  }

  void hold_back_reductions() {
    if (options_.reduction_limit == 0) return;
    std::string line;
    while (static_cast<int>(reductions_.size()) >= options_.reduction_limit) {
      line = "wait_reduce " + reductions_.front();
      reductions_.pop_front();
    }
    if (!line.empty()) write(line);
  }

  Options options_;
  std::vector<Visit> forward_, backward_;
  std::set<std::string> full_;
  std::deque<Release> releases_;
  std::deque<std::string> reductions_;
  int steps_ = 0;
  bool everything_is_here_ = false, last_micro_ = false;
  std::string text_;
};

}  // namespace headroom::testing::reference
