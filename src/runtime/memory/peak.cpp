#include "runtime/memory/peak.hpp"

namespace headroom::detail {

void PeakRecorder::reach(std::uint64_t event, std::size_t allocated_bytes, const TagBytes& tag_bytes) noexcept {
  moment_ = Moment{event, step_, allocated_bytes, tag_bytes, unit_, phase_, operation_};
  wants_list_ = true;
}

void PeakRecorder::begin_list() {
  rows_.clear();
  ++list_;
  wants_list_ = false;
}

PeakRow PeakRecorder::add(const Row& row) {
  rows_.push_back(row);
  return {list_, static_cast<std::uint32_t>(rows_.size() - 1)};
}

void PeakRecorder::freed(PeakRow row, std::uint64_t event) noexcept {
  if (row.list != 0 && row.list == list_) rows_[row.row].freed_event = event;
}

void PeakRecorder::mark_unit(int unit, const char* phase, const char* operation) noexcept {
  unit_ = unit;
  phase_ = phase;
  operation_ = operation;
}

MemoryPeak PeakRecorder::peak(std::span<const std::string> names) const {
  MemoryPeak peak;
  peak.event = moment_.event;
  peak.step = moment_.step;
  peak.allocated_bytes = moment_.allocated_bytes;
  peak.tag_bytes = moment_.tag_bytes;
  peak.unit = moment_.unit;
  peak.phase = moment_.phase;
  peak.operation = moment_.operation;
  peak.blocks.reserve(rows_.size());
  for (const Row& row : rows_) {
    LiveBlock block;
    block.name = names[row.name];
    block.unit = row.unit;
    block.tag = row.tag;
    block.bytes = row.bytes;
    block.allocated_event = row.allocated_event;
    block.freed_event = row.freed_event;
    block.shared = row.shared;
    peak.blocks.push_back(std::move(block));
  }
  return peak;
}

}  // namespace headroom::detail
