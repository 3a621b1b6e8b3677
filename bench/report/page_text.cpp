#include "report/page_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <utility>

namespace headroom::bench {
namespace {

constexpr double kKibi = 1024.0;

const UnitMark* mark_before(const StepDetail& detail, std::uint64_t event) {
  const UnitMark* last = nullptr;
  for (const UnitMark& mark : detail.marks)
    if (mark.event <= event) last = &mark;
  return last;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

/// "parameters of h.5 (current) and h.4 (next)" of the blocks with one of `tags`; many of a state are counted.
std::string sets(const PageSource& source, const std::vector<LiveShare>& live, std::initializer_list<Tag> tags,
                 const char* what) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> parts;
  for (const Tag tag : tags) {
    std::vector<std::string> units;
    for (const LiveShare& share : live)
      if (share.tag == tag) units.push_back(source.unit(share.block->unit));
    const std::string name = name_of(tag), state = " (" + name.substr(name.find('.') + 1) + ")";
    if (units.size() > kNamed) units = {std::to_string(units.size()).append(" units")};
    for (const std::string& unit : units) parts.push_back(unit + state);
  }
  return parts.empty() ? std::string() : std::string(what) + joined(parts);
}

/// All other categories, largest first.
std::string rest(const std::vector<LiveShare>& live) {
  std::map<Tag, std::size_t> sums;
  for (const LiveShare& share : live) sums[share.tag] += share.block->bytes;
  std::vector<std::pair<std::size_t, std::string>> largest;
  for (const auto& entry : sums) {
    const bool is_set = entry.first >= Tag::parameter_full_gathering && entry.first <= Tag::gradient_full_retained;
    if (!is_set && entry.second > 0) largest.emplace_back(entry.second, name_of(entry.first));
  }
  std::sort(largest.rbegin(), largest.rend());
  std::vector<std::string> parts;
  for (const auto& part : largest) parts.push_back(part.second + " " + bytes_text(part.first));
  return joined(parts);
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kKibi && unit + 1 < kUnits.size()) {
    value /= kKibi;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string peak_place(const PageSource& source, const StepDetail& detail) {
  const StepSummary& step = detail.summary;
  std::string place = step.step == 0 ? std::string("set-up") : std::string("step ").append(std::to_string(step.step));
  const UnitMark* mark = mark_before(detail, step.peak_event);
  if (mark == nullptr) return place;
  const std::string name = mark->name < source.names.size() ? source.names[mark->name] : std::string();
  const std::size_t space = name.find(' ');
  const std::string phase = name.substr(0, space);
  const std::string operation = space == std::string::npos ? std::string() : name.substr(space + 1);
  const std::string unit = source.unit(mark->unit);
  place.append(", ").append(phase);
  if (!unit.empty()) place.append(" of ").append(unit);
  if (!operation.empty() && operation != phase) place.append(" (").append(operation).append(")");
  return place;
}

std::string peak_sentence(const PageSource& source, const StepDetail& detail) {
  const std::vector<LiveShare> live = live_at(detail, detail.summary.peak_event);
  const std::string parameters = sets(source, live,
                                      {Tag::parameter_full_current, Tag::parameter_full_next,
                                       Tag::parameter_full_gathering, Tag::parameter_full_retained},
                                      "parameters of ");
  const std::string gradients = sets(source, live,
                                     {Tag::gradient_full_computing, Tag::gradient_full_awaiting_reduce,
                                      Tag::gradient_full_reducing, Tag::gradient_full_retained},
                                     "gradients of ");
  std::string text;
  if (!parameters.empty() && !gradients.empty()) {
    text = parameters + " stand beside " + gradients;
  } else if (!parameters.empty() || !gradients.empty()) {
    text = parameters + gradients +
           (parameters.empty() ? " stand alone, without full parameters" : " stand alone, without full gradients");
  } else {
    text = "no full parameters and no full gradients besides the shards";
  }
  return text + "; with " + rest(live);
}

std::string meaning_of(const std::string& statistic) {
  static const std::vector<std::pair<const char*, const char*>> kMeanings{
      {"allocation.all", "allocations that are not freed"},
      {"allocated_bytes.all", "bytes of allocations, rounded; falls when a free is requested"},
      {"requested_bytes.all", "bytes as asked for, before rounding"},
      {"active.all", "blocks that are allocated, or freed and still in use on the device"},
      {"active_bytes.all", "bytes of active blocks; falls when a free is completed"},
      {"reserved_bytes.all", "bytes mapped from the device"},
      {"pending_free_bytes", "bytes freed by the host, still in use on the device"},
      {"cached_bytes", "bytes mapped and free"},
      {"largest_free_block", "largest free run of bytes"},
      {"num_alloc_retries", "allocations that were tried again after memory was given back"},
      {"num_ooms", "allocations refused"},
      {"num_device_alloc", "times that pages were mapped"},
      {"num_device_free", "times that pages were unmapped"},
      {"waited_reuse", "blocks reused after a stream wait"},
      {"host_waits", "times that the calling thread waited for memory"},
      {"rungs.", "allocations served this way"},
      {"tag_bytes.", "bytes allocated now, of this category and state"},
  };
  for (const auto& meaning : kMeanings) {
    if (statistic.rfind(meaning.first, 0) == 0) return meaning.second;
  }
  const std::size_t dot = statistic.find('.');  // "transients.reserved_bytes.all.peak": of one region
  if (dot == std::string::npos || statistic.find("_bytes", dot) == std::string::npos) return {};
  return meaning_of(statistic.substr(dot + 1)) + ", of " + statistic.substr(0, dot);
}

}  // namespace headroom::bench
