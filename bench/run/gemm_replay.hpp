#pragma once

#include "workloads/workload.hpp"

#include <span>

namespace headroom::bench {

/// Runs a step's matrix products alone, in their order, on buffers of the largest size, a few times: the rate
/// (FLOP/s) of the fastest replay, which the step would have if it were nothing else. Blocks. Throws: OutOfMemory.
[[nodiscard]] double replay_gemms(std::span<const GemmCall> calls, const TensorSource& tensors);

}  // namespace headroom::bench
