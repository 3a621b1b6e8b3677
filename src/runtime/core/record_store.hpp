#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace headroom::detail {

/// Records in the order added, in chunks that clear() keeps: what once was enough is not taken again.
template <class T>
class RecordStore {
 public:
  /// Throws: std::bad_alloc, with nothing changed.
  void add(const T& record) {
    if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    chunks_[size_ / kChunk][size_ % kChunk] = record;
    ++size_;
  }
  void reserve(std::size_t records) {
    while (chunks_.size() * kChunk < records) chunks_.push_back(std::make_unique<T[]>(kChunk));
  }
  void clear() noexcept { size_ = 0; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return chunks_.size() * kChunk * sizeof(T); }
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> records;
    records.reserve(size_);
    for (std::size_t i = 0; i < size_; ++i) records.push_back((*this)[i]);
    return records;
  }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept {
    return chunks_[index / kChunk][index % kChunk];
  }

 private:
  static constexpr std::size_t kChunk = 512;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace headroom::detail
