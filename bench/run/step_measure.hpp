#pragma once

#include <headroom/trace.hpp>

#include "run/rank_record.hpp"

#include <cstdint>
#include <span>

namespace headroom::bench {

/// When a step was on the device: StepReport's begin and end.
struct StepWindow {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// Reads the trace of finished steps, a few at a time, and keeps sums: a long run needs no long trace.
class StepMeasure {
 public:
  /// `windows`: steps that are complete in `trace`, of a rank that computes on `compute`.
  void fold(const Trace& trace, std::span<const StepWindow> windows, StreamId compute);
  /// Means over the folded steps, into `record`.
  void write_means(RankRecord& record) const;

 private:
  void count(const OperationRecord& work);

  std::int64_t steps_ = 0;
  TraceSummary sum_;
  double all_gathers_ = 0, reduce_scatters_ = 0, all_reduces_ = 0;
  Availability availability_;
};

}  // namespace headroom::bench
