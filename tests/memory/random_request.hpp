#pragma once

#include <array>
#include <random>

#include "fake_backend.hpp"

namespace headroom::test {

struct ProgramOptions {
  unsigned seed = 1;
  int operations = 1000;
  std::size_t streams = 3;
  std::size_t limit_pages = 64, slot_pages = 16;
  std::size_t event_capacity = 4096;
  bool host_waits = false;        ///< The host waits for work, and asks for free pages back.
  bool finish_at_random = false;  ///< Lets work complete meanwhile, which must change nothing.
};

inline AllocationRequest any_request(std::mt19937& random) {
  constexpr std::array kCategories{Category::parameter_shard, Category::activation, Category::workspace,
                                   Category::other};
  constexpr std::array<std::size_t, 3> kUncommon{60'000, 300'000, 3};
  const std::size_t shape = random() % 10;
  const std::size_t bytes = random() % (shape < kUncommon.size() ? kUncommon.at(shape) : 6000);
  const Category category = kCategories.at(random() % kCategories.size());
  return request(bytes, category, "r", static_cast<Region>(random() % kRegionCount));
}

}  // namespace headroom::test
