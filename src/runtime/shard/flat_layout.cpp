#include <headroom/layout.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

namespace headroom {

namespace {

constexpr std::int64_t kAlignmentNumel = 16;
constexpr std::int64_t kLargestNumel = std::numeric_limits<std::int64_t>::max() / 16;  // its bytes, padded, still fit

std::int64_t align_up(std::int64_t value) { return (value + kAlignmentNumel - 1) / kAlignmentNumel * kAlignmentNumel; }

void check_spec(std::string_view unit, const ParameterSpec& spec) {
  if (spec.name.empty()) {
    throw InvalidInput(fmt::format("unit '{}': a parameter needs a name", unit));
  }
  if (spec.shape.empty() || spec.shape.size() > 4) {
    throw InvalidInput(fmt::format("unit '{}', parameter '{}': expected 1 to 4 extents, found {}", unit, spec.name,
                                   spec.shape.size()));
  }
  std::int64_t numel = 1;
  for (const std::int64_t extent : spec.shape) {
    if (extent <= 0 || numel > kLargestNumel / extent) {
      throw InvalidInput(
          fmt::format("unit '{}', parameter '{}': expected positive extents with at most {} elements, found [{}]", unit,
                      spec.name, kLargestNumel, fmt::join(spec.shape, ", ")));
    }
    numel *= extent;
  }
}

}  // namespace

std::int64_t ParameterSpec::numel() const noexcept {
  std::int64_t numel = 1;
  for (const std::int64_t extent : shape) {
    numel *= extent;
  }
  return numel;
}

FlatLayout FlatLayout::make(std::string_view unit, std::vector<ParameterSpec> parameters, int world) {
  if (world < 1) {
    throw InvalidInput(fmt::format("unit '{}': expected a world size of at least 1, found {}", unit, world));
  }
  if (parameters.empty()) {
    throw InvalidInput(fmt::format("unit '{}' has no parameters: a unit needs at least one", unit));
  }
  FlatLayout layout;
  layout.unit = unit;
  layout.world = world;
  std::set<std::string_view> names;
  std::int64_t end = 0;
  for (const ParameterSpec& spec : parameters) {
    check_spec(unit, spec);
    if (!names.insert(spec.name).second) {
      throw InvalidInput(fmt::format("unit '{}' has two parameters named '{}'", unit, spec.name));
    }
    if (end > kLargestNumel - spec.numel()) {
      throw InvalidInput(fmt::format("unit '{}' has more than {} elements", unit, kLargestNumel));
    }
    layout.offsets.push_back(end);
    layout.numel += spec.numel();
    end = align_up(end + spec.numel());
  }
  layout.shard_numel = align_up((end + world - 1) / world);
  layout.padded_numel = layout.shard_numel * world;
  layout.parameters = std::move(parameters);
  return layout;
}

std::vector<FlatLayout::Range> FlatLayout::ranges(int rank) const {
  const std::int64_t shard_begin = rank * shard_numel;
  const std::int64_t shard_end = shard_begin + shard_numel;
  std::vector<Range> found;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t begin = std::max(offsets[i], shard_begin);
    const std::int64_t end = std::min(offsets[i] + parameters[i].numel(), shard_end);
    if (begin < end) {
      found.push_back({static_cast<int>(i), begin - offsets[i], end - begin, begin - shard_begin});
    }
  }
  return found;
}

int FlatLayout::index_of(std::string_view parameter) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) {
      return static_cast<int>(i);
    }
    names.push_back(parameters[i].name);
  }
  throw InvalidInput(
      fmt::format("unit '{}' has no parameter '{}'; it has {}", unit, parameter, fmt::join(names, ", ")));
}

}  // namespace headroom
