#pragma once

#include <headroom/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

/// How a parameter begins: the same values at every world size, drawn by (seed, unit, parameter, element).
struct Initializer {
  float mean = 0, standard_deviation = 0;
};
[[nodiscard]] constexpr Initializer normal(float standard_deviation) noexcept { return {0, standard_deviation}; }
[[nodiscard]] constexpr Initializer constant(float value) noexcept { return {value, 0}; }

struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;  ///< 1..4 positive extents; AdamW decays parameters of two or more.
  Initializer initializer{};

  [[nodiscard]] std::int64_t numel() const noexcept;
};

/// Where each parameter of a unit lies in the unit's flat buffer, and which part each rank owns. Pure arithmetic, in
/// elements: parameters end to end, each at a multiple of 16 elements (64 bytes of f32), padded so that rank r owns
/// [r * shard_numel, (r + 1) * shard_numel). Ranks at the end may own nothing but padding.
struct FlatLayout {
  /// Throws: InvalidInput on an empty unit, a duplicate name, or extents that are not positive or overflow.
  [[nodiscard]] static FlatLayout make(std::string_view unit, std::vector<ParameterSpec> parameters, int world);

  /// The part of one parameter that lies in one rank's shard.
  struct Range {
    int parameter = 0;
    std::int64_t begin = 0;  ///< First element, in the parameter.
    std::int64_t numel = 0;
    std::int64_t shard_offset = 0;  ///< Where it lies in the shard.
  };
  [[nodiscard]] std::vector<Range> ranges(int rank) const;
  /// Throws: InvalidInput naming the unit and its parameters.
  [[nodiscard]] int index_of(std::string_view parameter) const;

  std::string unit;
  std::vector<ParameterSpec> parameters;
  std::vector<std::int64_t> offsets;  ///< In the flat buffer.
  std::int64_t numel = 0;             ///< Of all parameters, without padding.
  std::int64_t padded_numel = 0, shard_numel = 0;
  int world = 1;
};

}  // namespace headroom
