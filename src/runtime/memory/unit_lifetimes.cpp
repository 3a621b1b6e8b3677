#include <headroom/buffer_spans.hpp>

#include <algorithm>
#include <map>

namespace headroom {
namespace {

bool is_full_set(Tag tag) { return tag >= Tag::parameter_full_gathering && tag <= Tag::parameter_full_releasing; }

/// A stretch of time, joined from spans of one storage that touch.
struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::size_t bytes = 0;
};

struct Unit {
  UnitLifetimes lifetimes;
  std::vector<Stretch> shards, sets;
};

void add_set(Unit& unit, const BufferSpan& span) {
  UnitLifetimes& lifetimes = unit.lifetimes;
  lifetimes.full_bytes = std::max(lifetimes.full_bytes, span.bytes);
  if (lifetimes.sets.empty() || lifetimes.sets.back().allocation != span.allocation) {
    lifetimes.sets.push_back({span.allocation, span.begin_ns, span.end_ns});
    unit.sets.push_back({span.begin_ns, span.end_ns, span.bytes});
  }
  SetUse& set = lifetimes.sets.back();
  set.end_ns = unit.sets.back().end_ns = span.end_ns;
  const std::int64_t length_ns = span.end_ns - span.begin_ns;
  if (span.tag == Tag::parameter_full_gathering) {
    set.gathering_ns += length_ns;
  } else if (span.tag == Tag::parameter_full_current) {
    set.used_ns += length_ns;
  } else {
    set.idle_ns += length_ns;
  }
}

void measure_overlap(Unit& unit) {
  UnitLifetimes& lifetimes = unit.lifetimes;
  for (const Stretch& shard : unit.shards) {
    for (const Stretch& set : unit.sets) {
      const std::int64_t overlap_ns = std::min(shard.end_ns, set.end_ns) - std::max(shard.begin_ns, set.begin_ns);
      if (overlap_ns <= 0) continue;
      lifetimes.longest_overlap_ns = std::max(lifetimes.longest_overlap_ns, overlap_ns);
      lifetimes.overlap_byte_seconds += static_cast<double>(set.bytes) * static_cast<double>(overlap_ns) * 1e-9;
    }
  }
}

}  // namespace

std::vector<UnitLifetimes> unit_lifetimes(std::span<const BufferSpan> spans) {
  std::map<int, Unit> units;
  for (const BufferSpan& span : spans) {
    if (span.unit < 0 || (span.tag != Tag::parameter_shard && !is_full_set(span.tag))) continue;
    Unit& unit = units[span.unit];
    if (is_full_set(span.tag)) {
      add_set(unit, span);
      continue;
    }
    unit.lifetimes.shard_bytes = std::max(unit.lifetimes.shard_bytes, span.bytes);
    unit.shards.push_back({span.begin_ns, span.end_ns, span.bytes});
    if (span.shared) unit.lifetimes.storage = ShardStorage::shared;
  }
  std::vector<UnitLifetimes> result;
  for (auto& [index, unit] : units) {
    unit.lifetimes.unit = index;
    if (!unit.sets.empty()) unit.lifetimes.storage = ShardStorage::separate;
    measure_overlap(unit);
    result.push_back(std::move(unit.lifetimes));
  }
  return result;
}

}  // namespace headroom
