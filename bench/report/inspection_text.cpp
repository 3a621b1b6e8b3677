#include "report/inspection.hpp"

#include "report/peak_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace headroom::bench {
namespace {

constexpr std::array<const char*, kRegionCount> kRegionNames{"residents", "communication", "transients"};
constexpr std::array<const char*, 3> kStorageNames{"none", "separate", "shared"};

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

class Page {
 public:
  explicit Page(const Inspection& of) : of_(of) {}

  std::string text(bool units) {
    const std::string steps =
        of_.first_step < 0 ? "no steps" : fmt::format("steps {} to {}", of_.first_step, of_.last_step);
    line(fmt::format("{}: rank {} of {}, {} events, {}", of_.path, of_.info.rank, of_.info.world, of_.events, steps));
    show_instant();
    if (of_.device) {
      show_device();
    } else {
      show_categories(of_.instant.statistics.tag_bytes);
      show_buffers();
    }
    line(fmt::format("\n{}", peak_text(of_.peak, of_.info.units)));
    if (units) show_units();
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_.append(text).append("\n"); }

  void show_instant() {
    const MemoryInstant& now = of_.instant;
    const auto [phase, operation] = now.mark ? split_mark(of_.name(*now.mark)) : std::pair<std::string, std::string>();
    line(fmt::format("event {} at {:.3f} ms: {}", now.event, milliseconds(now.time_ns),
                     place_text(now.step, of_.unit(now.unit), phase, operation)));
    line(fmt::format("  allocated {} (union of views {}, sum of views {}), pending {}, reserved {}",
                     size_text(now.allocated_bytes()), size_text(now.union_bytes), size_text(now.share_bytes),
                     size_text(now.pending_bytes()), size_text(now.reserved_bytes())));
    for (std::size_t i = 0; i < kRegionNames.size(); ++i) {
      const RegionStatistics& region = now.statistics.regions[i];
      line(fmt::format("  {:<14} allocated {:>11}   reserved {:>11}", kRegionNames[i],
                       size_text(region.allocated_bytes.current), size_text(region.reserved_bytes.current)));
    }
  }

  void show_categories(const TagBytes& tags) {
    line("\ncategory");
    for (int i = 0; i < kTagCount; ++i) {
      const std::size_t bytes = tags[static_cast<std::size_t>(i)];
      if (bytes > 0) line(fmt::format("  {:<29} {:>11}", name_of(static_cast<Tag>(i)), size_text(bytes)));
    }
    if (of_.instant.pending_bytes() > 0 && !of_.device) {
      line(fmt::format("  {:<29} {:>11}   freed, last use not complete: in no sum", "(pending)",
                       size_text(of_.instant.pending_bytes())));
    }
  }

  void show_buffer(const std::string& name, int unit, Tag tag, std::size_t bytes, const std::string& more) {
    line(fmt::format("  {:<24} {:<12} {:<29} {:>11}   {}", name, of_.unit(unit), name_of(tag), size_text(bytes), more));
  }

  void show_buffers() {
    std::vector<LiveBuffer> buffers = of_.buffers;
    std::ranges::stable_sort(buffers, std::greater<>(), &LiveBuffer::bytes);
    line(fmt::format("\n{} buffers, largest first", buffers.size()));
    for (const LiveBuffer& buffer : buffers) {
      std::string more = fmt::format("event {}", buffer.event);
      if (buffer.pending) more += ", pending";
      if (!buffer.views.empty()) more += fmt::format(", {} views", buffer.views.size());
      show_buffer(of_.name(buffer.name), buffer.unit, buffer.tag, buffer.bytes, more);
    }
  }

  void show_device() {
    line(fmt::format("on the device at {:.3f} ms: live {}", milliseconds(of_.device->time_ns),
                     size_text(of_.device->live_bytes)));
    show_categories(of_.device->tag_bytes);
    std::vector<BufferSpan> spans = of_.device_buffers;
    std::ranges::stable_sort(spans, std::greater<>(), &BufferSpan::bytes);
    line(fmt::format("\n{} buffers, largest first; in that state from, to (ms)", spans.size()));
    for (const BufferSpan& span : spans) {
      show_buffer(of_.name(span.name), span.unit, span.tag, span.bytes,
                  fmt::format("{:.3f} to {:.3f}", milliseconds(span.begin_ns), milliseconds(span.end_ns)));
    }
  }

  void show_units() {
    line(fmt::format("\nunits in that step, {} clock; times in ms, of all sets together",
                     of_.clock == Clock::issue ? "issue" : "device"));
    line(fmt::format("  {:<14} {:<9} {:>11} {:>11} {:>5} {:>10} {:>10} {:>10} {:>14}", "unit", "storage", "shard",
                     "full", "sets", "gathering", "idle", "used", "longest beside"));
    for (const UnitLifetimes& unit : of_.units) {
      SetUse sum;
      for (const SetUse& set : unit.sets) {
        sum.gathering_ns += set.gathering_ns;
        sum.idle_ns += set.idle_ns;
        sum.used_ns += set.used_ns;
      }
      line(fmt::format("  {:<14} {:<9} {:>11} {:>11} {:>5} {:>10.3f} {:>10.3f} {:>10.3f} {:>14.3f}",
                       of_.unit(unit.unit), kStorageNames.at(static_cast<std::size_t>(unit.storage)),
                       size_text(unit.shard_bytes), size_text(unit.full_bytes), unit.sets.size(),
                       milliseconds(sum.gathering_ns), milliseconds(sum.idle_ns), milliseconds(sum.used_ns),
                       milliseconds(unit.longest_overlap_ns)));
    }
  }

  const Inspection& of_;
  std::string text_;
};

}  // namespace

std::string to_text(const Inspection& inspection, bool units) { return Page(inspection).text(units); }

}  // namespace headroom::bench
