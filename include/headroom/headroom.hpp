#pragma once

#include <headroom/allocator.hpp>
#include <headroom/buffer_spans.hpp>
#include <headroom/communicator.hpp>
#include <headroom/device.hpp>
#include <headroom/error.hpp>
#include <headroom/kernels.hpp>
#include <headroom/layout.hpp>
#include <headroom/optimizer.hpp>
#include <headroom/parameters.hpp>
#include <headroom/process_memory.hpp>
#include <headroom/recording.hpp>
#include <headroom/schedule.hpp>
#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>
#include <headroom/timeline.hpp>
#include <headroom/trace.hpp>
