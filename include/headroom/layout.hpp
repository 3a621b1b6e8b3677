#pragma once

#include <headroom/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

/// How a parameter begins: the same values for every world size and wrapping, drawn by (seed, place in registration
/// order, element).
struct Initializer {
  float mean = 0, standard_deviation = 0;
};
[[nodiscard]] constexpr Initializer normal(float standard_deviation) noexcept { return {0, standard_deviation}; }
[[nodiscard]] constexpr Initializer constant(float value) noexcept { return {value, 0}; }

struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;  ///< 1..4 positive extents; AdamW decays parameters of two or more.
  Initializer initializer{};
  bool frozen = false;  ///< Gathered like any other, but has no gradient and is never updated.

  [[nodiscard]] std::int64_t numel() const noexcept;
};

/// Where each parameter of a unit lies in the unit's flat buffer, and which part each rank of a shard group owns. Pure
/// arithmetic, in elements. Two groups, first the trainable parameters, then the frozen ones; in each they lie end to
/// end, at multiples of 16 elements (64 bytes of f32), padded so that rank r owns the r-th equal part. Ranks at the end
/// may own nothing but padding.
struct FlatLayout {
  /// `ranks`: of a shard group. Throws: InvalidInput on an empty unit, a duplicate name, or extents that are not
  /// positive or overflow.
  [[nodiscard]] static FlatLayout make(std::string_view unit, std::vector<ParameterSpec> parameters, int ranks);

  /// A flat group of its own: a full gradient covers the trainable one only.
  struct Group {
    std::int64_t begin = 0, padded_numel = 0;       ///< In the full buffer.
    std::int64_t shard_begin = 0, shard_numel = 0;  ///< In a rank's shard.
  };

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
  std::vector<std::int64_t> offsets;  ///< In the full buffer.
  std::int64_t numel = 0;             ///< Of all parameters, without padding.
  Group trainable, frozen;
  std::int64_t padded_numel = 0, shard_numel = 0;  ///< Of both groups.
  int ranks = 1;
};

}  // namespace headroom
