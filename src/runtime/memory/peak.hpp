#pragma once

#include <headroom/memory_statistics.hpp>

#include <span>

namespace headroom::detail {

/// Where an allocation or a view stands in the list of the peak's blocks: valid while the list is the same one.
struct PeakRow {
  std::uint32_t list = 0, row = 0;
};

/// Remembers the moment at which allocated bytes were highest. The sums are kept at once; the list of blocks is taken
/// by the owner, lazily, before the first change after a new peak, so that climbing costs no list.
class PeakRecorder {
 public:
  struct Row {
    std::uint32_t name = 0;
    int unit = -1;
    Tag tag = Tag::other;
    bool shared = false;
    std::size_t bytes = 0;
    std::uint64_t allocated_event = 0;
    std::optional<std::uint64_t> freed_event;
  };

  void reach(std::uint64_t event, std::size_t allocated_bytes, const TagBytes& tag_bytes) noexcept;
  [[nodiscard]] bool wants_list() const noexcept { return wants_list_; }
  /// Room for a list of so many blocks, which then does not throw.
  void prepare(std::size_t blocks) {
    if (rows_.capacity() < blocks) rows_.reserve(2 * blocks);
  }
  void begin_list();
  [[nodiscard]] PeakRow add(const Row& row);
  void freed(PeakRow row, std::uint64_t event) noexcept;

  void mark_step(std::int64_t step) noexcept { step_ = step; }
  void mark_unit(int unit, const char* phase, const char* operation) noexcept;
  [[nodiscard]] MemoryPeak peak(std::span<const std::string> names) const;

 private:
  struct Moment {
    std::uint64_t event = 0;
    std::int64_t step = -1;
    std::size_t allocated_bytes = 0;
    TagBytes tag_bytes{};
    int unit = -1;
    const char *phase = "", *operation = "";
  };
  Moment moment_;
  std::int64_t step_ = -1;
  int unit_ = -1;
  const char *phase_ = "", *operation_ = "";
  std::vector<Row> rows_;
  std::uint32_t list_ = 0;  ///< The list's number; 0: none was taken.
  bool wants_list_ = false;
};

}  // namespace headroom::detail
