#include "report/inspection.hpp"

#include "report/peak_text.hpp"
#include "report/rank_json.hpp"

#include <array>

namespace headroom::bench {
namespace {

constexpr std::array<const char*, kRegionCount> kRegionNames{"residents", "communication", "transients"};
constexpr std::array<const char*, 3> kStorageNames{"none", "separate", "shared"};

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Json categories_json(const TagBytes& tags) {
  Json json;
  for (int tag = 0; tag < kTagCount; ++tag) json[name_of(static_cast<Tag>(tag))] = tags[static_cast<std::size_t>(tag)];
  return json;
}

Json buffer_json(const Inspection& of, const LiveBuffer& buffer) {
  Json views = Json::array();
  for (const LiveView& view : buffer.views) {
    views.push_back({{"name", of.name(view.name)}, {"offset", view.address - buffer.address}, {"bytes", view.bytes}});
  }
  return {{"name", of.name(buffer.name)},        {"unit", text_or_null(of.unit(buffer.unit))},
          {"category", name_of(buffer.tag)},     {"bytes", buffer.bytes},
          {"requested", buffer.requested_bytes}, {"region", kRegionNames.at(static_cast<std::size_t>(buffer.region))},
          {"address", buffer.address},           {"allocated_event", buffer.event},
          {"pending", buffer.pending},           {"views", views}};
}

Json issue_json(const Inspection& of) {
  const MemoryInstant& now = of.instant;
  const auto [phase, operation] = now.mark ? split_mark(of.name(*now.mark)) : std::pair<std::string, std::string>();
  Json regions;
  for (std::size_t i = 0; i < kRegionNames.size(); ++i) {
    regions[kRegionNames[i]] = {{"allocated", now.statistics.regions[i].allocated_bytes.current},
                                {"reserved", now.statistics.regions[i].reserved_bytes.current}};
  }
  Json buffers = Json::array();
  for (const LiveBuffer& buffer : of.buffers) buffers.push_back(buffer_json(of, buffer));
  return {{"event", now.event},
          {"time", seconds(now.time_ns)},
          {"step", now.step < 0 ? Json(nullptr) : Json(now.step)},
          {"phase", text_or_null(phase)},
          {"unit", text_or_null(of.unit(now.unit))},
          {"operation", text_or_null(operation)},
          {"allocated", now.allocated_bytes()},
          {"union_of_views", now.union_bytes},
          {"sum_of_views", now.share_bytes},
          {"requested", now.statistics.requested_bytes.current},
          {"active", now.statistics.active_bytes.current},
          {"pending", now.pending_bytes()},
          {"releasing", now.releasing_bytes},
          {"reserved", now.reserved_bytes()},
          {"regions", regions},
          {"categories", categories_json(now.statistics.tag_bytes)},
          {"buffers", buffers}};
}

Json device_json(const Inspection& of) {
  if (!of.device) return nullptr;
  Json buffers = Json::array();
  for (const BufferSpan& span : of.device_buffers) {
    buffers.push_back({{"name", of.name(span.name)},
                       {"unit", text_or_null(of.unit(span.unit))},
                       {"category", name_of(span.tag)},
                       {"bytes", span.bytes},
                       {"begin", seconds(span.begin_ns)},
                       {"end", seconds(span.end_ns)}});
  }
  return {{"time", seconds(of.device->time_ns)},
          {"live", of.device->live_bytes},
          {"categories", categories_json(of.device->tag_bytes)},
          {"buffers", buffers}};
}

Json unit_json(const Inspection& of, const UnitLifetimes& unit) {
  Json sets = Json::array();
  for (const SetUse& set : unit.sets) {
    sets.push_back({{"begin", seconds(set.begin_ns)},
                    {"end", seconds(set.end_ns)},
                    {"gathering", seconds(set.gathering_ns)},
                    {"idle", seconds(set.idle_ns)},
                    {"used", seconds(set.used_ns)}});
  }
  return {{"unit", text_or_null(of.unit(unit.unit))},
          {"storage", kStorageNames.at(static_cast<std::size_t>(unit.storage))},
          {"shard_bytes", unit.shard_bytes},
          {"full_bytes", unit.full_bytes},
          {"longest_overlap_seconds", seconds(unit.longest_overlap_ns)},
          {"overlap_byte_seconds", unit.overlap_byte_seconds},
          {"sets", sets}};
}

}  // namespace

Json to_json(const Inspection& inspection) {
  Json units = Json::array();
  for (const UnitLifetimes& unit : inspection.units) units.push_back(unit_json(inspection, unit));
  Json peak = peak_json(inspection.peak, inspection.info.units);
  peak["because"] = peak_text(inspection.peak, inspection.info.units);
  const auto step_or_null = [](std::int64_t step) { return step < 0 ? Json(nullptr) : Json(step); };
  return {{"inspect", 1},
          {"file", inspection.path},
          {"rank", inspection.info.rank},
          {"world", inspection.info.world},
          {"events", inspection.events},
          {"steps", {step_or_null(inspection.first_step), step_or_null(inspection.last_step)}},
          {"clock", inspection.clock == Clock::issue ? "issue" : "device"},
          {"instant", issue_json(inspection)},
          {"device", device_json(inspection)},
          {"peak", peak},
          {"units", units}};
}

}  // namespace headroom::bench
