#pragma once

#include <cstdint>
#include <vector>

namespace headroom::detail {

/// Records with stable indices; removed ones are used again, last removed first. remove() does not allocate.
template <class T>
class RecordTable {
 public:
  /// A default record.
  std::uint32_t add() {
    if (!unused_.empty()) {
      const std::uint32_t index = unused_.back();
      unused_.pop_back();
      return index;
    }
    if (items_.size() == items_.capacity()) {
      unused_.reserve(2 * items_.size() + 16);
      items_.reserve(2 * items_.size() + 16);
    }
    items_.emplace_back();
    return static_cast<std::uint32_t>(items_.size() - 1);
  }
  void remove(std::uint32_t index) noexcept {
    items_[index] = T{};
    unused_.push_back(index);
  }
  [[nodiscard]] T& operator[](std::uint32_t index) noexcept { return items_[index]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const noexcept { return items_[index]; }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(items_.size()); }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace headroom::detail
