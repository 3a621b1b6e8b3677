#pragma once

namespace headroom::test {

/// How many more times `new` succeeds on this thread before it throws once; -1: without end. For programs with
/// failing_heap.cpp.
extern thread_local int allocations_left;

}  // namespace headroom::test
