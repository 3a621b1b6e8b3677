#include "report/trace_memory.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;

bool changes_memory(Kind kind) {
  return kind == Kind::segment_map || kind == Kind::segment_unmap || kind == Kind::alloc ||
         kind == Kind::free_requested || kind == Kind::free_completed || kind == Kind::retag;
}

}  // namespace

void TraceMemory::apply(const AllocatorEvent& event) {
  if (reader_.lost_events() > 0) return;
  timeline_.apply(event);
  now_ns_ = std::max(now_ns_, event.time_ns);
  if (changes_memory(event.kind) || event.kind == Kind::step) sample(event.kind == Kind::step);
  if (event.kind == Kind::alloc && event.bytes >= kShownBytes) begin_life(event);
  if (event.kind == Kind::free_completed) end_life(event.allocation);
}

void TraceMemory::sample(bool is_step) {
  const std::int64_t bucket = now_ns_ / bucket_ns_;
  if (is_step || bucket > bucket_) flush(bucket);
  bucket_ = bucket;
  const MemoryStatistics& now = timeline_.now().statistics;
  last_ = {now_ns_, now.tag_bytes, now.allocated_bytes.current, now.pending_free_bytes.current, now.cached_bytes};
  const auto height = [](const Sample& each) {
    return std::make_pair(each.allocated_bytes + each.pending_bytes, each.allocated_bytes);
  };
  if (!highest_ || height(last_) >= height(*highest_)) highest_ = last_;
  if (is_step) flush(bucket);
}

void TraceMemory::flush(std::int64_t next_bucket) {
  if (!highest_) return;
  write(*highest_);
  const bool is_left_standing = next_bucket > bucket_ + 1 && last_.time_ns > highest_->time_ns;
  last_.time_ns = (bucket_ + 1) * bucket_ns_;
  if (is_left_standing) write(last_);
  highest_.reset();
}

void TraceMemory::write(const Sample& sample) {
  std::string tags;
  for (std::size_t tag = 0; tag < kTagCount; ++tag) {
    if (!extent_.tags[tag]) continue;
    tags += fmt::format("{}\"{}\":{}", tags.empty() ? "" : ",", name_of(static_cast<Tag>(tag)), sample.tag_bytes[tag]);
  }
  const std::int64_t at_ns = reader_.info().steady_ns + sample.time_ns;
  out_.counter(process(), at_ns, "allocated bytes", tags);
  out_.counter(process(), at_ns, "reserved bytes",
               fmt::format(R"("allocated":{},"pending":{},"cached":{})", sample.allocated_bytes, sample.pending_bytes,
                           sample.cached_bytes));
}

void TraceMemory::begin_life(const AllocatorEvent& event) {
  if (left_out_ > 0) {
    --left_out_;
    return;
  }
  const std::vector<std::string>& units = reader_.info().units;
  const bool has_unit = event.unit >= 0 && static_cast<std::size_t>(event.unit) < units.size();
  Life life;
  life.name = fmt::format("{}{}{} {:.1f} MiB", has_unit ? units[static_cast<std::size_t>(event.unit)] : "",
                          has_unit ? " " : "", event.name < reader_.names().size() ? reader_.names()[event.name] : "",
                          static_cast<double>(event.bytes) / static_cast<double>(kShownBytes));
  life.stream = event.stream;
  life.id = (static_cast<std::uint64_t>(reader_.info().rank) << 40U) + event.number;
  out_.life('b', process(), static_cast<int>(life.stream), reader_.info().steady_ns + now_ns_, life.id, life.name,
            fmt::format(R"("bytes":{},"category":"{}","event":{})", event.bytes, name_of(event.tag), event.number));
  lives_[event.allocation] = std::move(life);
}

void TraceMemory::end_life(std::uint64_t allocation) {
  const auto found = lives_.find(allocation);
  if (found == lives_.end()) return;
  const Life& life = found->second;
  out_.life('e', process(), static_cast<int>(life.stream), reader_.info().steady_ns + now_ns_, life.id, life.name, "");
  lives_.erase(found);
}

void TraceMemory::finish() {
  flush(bucket_ + 2);
  while (!lives_.empty()) end_life(lives_.begin()->first);
}

}  // namespace headroom::bench
