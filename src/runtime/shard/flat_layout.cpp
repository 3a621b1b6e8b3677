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

void check_specs(std::string_view unit, const std::vector<ParameterSpec>& parameters) {
  std::set<std::string_view> names;
  std::int64_t numel = 0;
  for (const ParameterSpec& spec : parameters) {
    check_spec(unit, spec);
    if (!names.insert(spec.name).second) {
      throw InvalidInput(fmt::format("unit '{}' has two parameters named '{}'", unit, spec.name));
    }
    if (numel > kLargestNumel - spec.numel()) {
      throw InvalidInput(fmt::format("unit '{}' has more than {} elements", unit, kLargestNumel));
    }
    numel += align_up(spec.numel());
  }
}

/// Appends the frozen, or the other, parameters to the buffers.
void place_group(FlatLayout& layout, bool frozen) {
  FlatLayout::Group group{layout.padded_numel, 0, layout.shard_numel, 0};
  std::int64_t end = 0;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const ParameterSpec& spec = layout.parameters[i];
    if (spec.frozen != frozen) {
      continue;
    }
    layout.offsets[i] = group.begin + end;
    layout.numel += spec.numel();
    end = align_up(end + spec.numel());
  }
  group.shard_numel = align_up((end + layout.ranks - 1) / layout.ranks);
  group.padded_numel = group.shard_numel * layout.ranks;
  layout.padded_numel += group.padded_numel;
  layout.shard_numel += group.shard_numel;
  (frozen ? layout.frozen : layout.trainable) = group;
}

}  // namespace

std::int64_t ParameterSpec::numel() const noexcept {
  std::int64_t numel = 1;
  for (const std::int64_t extent : shape) {
    numel *= extent;
  }
  return numel;
}

FlatLayout FlatLayout::make(std::string_view unit, std::vector<ParameterSpec> parameters, int ranks) {
  if (ranks < 1) {
    throw InvalidInput(fmt::format("unit '{}': expected at least 1 rank of a shard group, found {}", unit, ranks));
  }
  if (parameters.empty()) {
    throw InvalidInput(fmt::format("unit '{}' has no parameters: a unit needs at least one", unit));
  }
  FlatLayout layout;
  layout.unit = unit;
  layout.ranks = ranks;
  layout.parameters = std::move(parameters);
  layout.offsets.resize(layout.parameters.size());
  check_specs(unit, layout.parameters);
  place_group(layout, false);
  place_group(layout, true);
  return layout;
}

std::vector<FlatLayout::Range> FlatLayout::ranges(int rank) const {
  std::vector<Range> found;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Group& group = parameters[i].frozen ? frozen : trainable;
    const std::int64_t owned = group.begin + rank * group.shard_numel;
    const std::int64_t begin = std::max(offsets[i], owned);
    const std::int64_t end = std::min(offsets[i] + parameters[i].numel(), owned + group.shard_numel);
    if (begin < end) {
      found.push_back({static_cast<int>(i), begin - offsets[i], end - begin, group.shard_begin + begin - owned});
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
