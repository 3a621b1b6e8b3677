#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace headroom::detail {

inline constexpr std::size_t kGranuleBytes = 512;

/// Size classes of whole granules: one a granule up to 15, then 16 a power of two. A set of non-empty classes.
class SizeClasses {
 public:
  static constexpr std::size_t kCount = std::size_t{56} * 16;

  /// `bytes`: a positive multiple of the granule.
  [[nodiscard]] static constexpr std::size_t of(std::size_t bytes) noexcept {
    const std::size_t granules = bytes / kGranuleBytes;
    if (granules < 16) return granules;
    const auto level = static_cast<std::size_t>(std::bit_width(granules)) - 1;
    return (level - 3) * 16 + ((granules >> (level - 4)) & 15U);
  }

  void insert(std::size_t size_class) noexcept { words_[size_class / 64] |= bit(size_class); }
  void erase(std::size_t size_class) noexcept { words_[size_class / 64] &= ~bit(size_class); }

  [[nodiscard]] bool contains(std::size_t size_class) const noexcept {
    return (words_[size_class / 64] & bit(size_class)) != 0;
  }
  /// The first class at or above `from` that is in the set; kCount if there is none.
  [[nodiscard]] std::size_t next(std::size_t from) const noexcept {
    if (from >= kCount) return kCount;
    std::size_t word = from / 64;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) {
      if (++word == words_.size()) return kCount;
      bits = words_[word];
    }
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t size_class) noexcept {
    return std::uint64_t{1} << (size_class % 64);
  }
  std::array<std::uint64_t, kCount / 64> words_{};
};

/// The next multiple of `unit` (a power of two or not); `value` must leave room for it.
[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}
[[nodiscard]] constexpr std::size_t round_down(std::size_t value, std::size_t unit) noexcept {
  return value / unit * unit;
}

}  // namespace headroom::detail
