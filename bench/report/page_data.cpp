#include "report/page_data.hpp"

#include "report/palette.hpp"
#include "report/peak_text.hpp"
#include "report/statistic_meaning.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, kRegionCount> kRegions{"residents", "communication", "transients"};
constexpr std::array<const char*, 4> kRoles{"compute", "gather", "reduce", "transfer"};

std::string css_color(std::uint32_t color) { return fmt::format("#{:06x}", color); }

Json columns(std::initializer_list<const char*> names) {
  Json json = Json::object();
  for (const char* name : names) json[name] = Json::array();
  return json;
}

/// At most this many steps in the overview; of more, each bar is the highest of several.
constexpr std::size_t kOverviewSteps = 4000;

Json overview_json(const RunOverview& run) {
  Json json = columns({"step", "allocated", "active", "reserved", "begin_event", "end_event"});
  const std::size_t group = (run.steps.size() + kOverviewSteps - 1) / kOverviewSteps;
  for (std::size_t i = 0; i < run.steps.size(); i += group) {
    const auto begin = run.steps.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = run.steps.begin() + static_cast<std::ptrdiff_t>(std::min(i + group, run.steps.size()));
    const auto highest = std::max_element(
        begin, end, [](const StepSummary& a, const StepSummary& b) { return a.peak_allocated < b.peak_allocated; });
    json["step"].push_back(highest->step);
    json["allocated"].push_back(highest->peak_allocated);
    json["active"].push_back(highest->peak_active);
    json["reserved"].push_back(highest->peak_reserved);
    json["begin_event"].push_back(highest->begin_event);
    json["end_event"].push_back(highest->end_event);
  }
  json["steps_per_bar"] = group;
  return json;
}

Json blocks_json(const StepDetail& detail) {
  Json json = columns({"name", "unit", "region", "bytes", "requested"});
  for (const PageBlock& block : detail.blocks) {
    json["name"].push_back(block.name);
    json["unit"].push_back(block.unit);
    json["region"].push_back(static_cast<int>(block.region));
    json["bytes"].push_back(block.bytes);
    json["requested"].push_back(block.requested_bytes);
  }
  return json;
}

/// `tag`: live with this one; -1: free requested; -2: free completed.
Json changes_json(const StepDetail& detail, std::int64_t origin_ns) {
  Json json = columns({"block", "event", "host", "tag"});
  for (std::size_t i = 0; i < detail.blocks.size(); ++i) {
    for (const BlockChange& change : detail.blocks[i].changes) {
      json["block"].push_back(i);
      json["event"].push_back(change.event);
      json["host"].push_back(change.host_ns - origin_ns);
      const bool live = change.to == BlockChange::To::live;
      json["tag"].push_back(live ? static_cast<int>(change.tag) : -static_cast<int>(change.to));
    }
  }
  return json;
}

/// In device time; a block's one after the other.
Json device_spans_json(const StepDetail& detail, std::int64_t origin_ns) {
  std::unordered_map<std::uint64_t, std::size_t> blocks;
  for (std::size_t i = 0; i < detail.blocks.size(); ++i) blocks[detail.blocks[i].allocation] = i;
  Json json = columns({"block", "tag", "begin", "end"});
  for (const BufferSpan& span : detail.device_spans) {
    json["block"].push_back(blocks.at(span.allocation));
    json["tag"].push_back(static_cast<int>(span.tag));
    json["begin"].push_back(span.begin_ns - origin_ns);
    json["end"].push_back(span.end_ns - origin_ns);
  }
  return json;
}

Json operations_json(const StepDetail& detail, std::int64_t origin_ns) {
  Json json = columns({"stream", "name", "unit", "wait", "issued", "start", "end"});
  for (const RecordedOperation& record : detail.operations) {
    const bool is_seen = record.kind == OperationRecord::Kind::work || record.end_ns > record.start_ns;
    if (record.kind == OperationRecord::Kind::skipped || !is_seen) continue;
    const bool wait = record.kind == OperationRecord::Kind::wait;
    json["stream"].push_back(record.stream);
    json["name"].push_back(record.name);
    json["unit"].push_back(record.unit);
    json["wait"].push_back(wait ? static_cast<int>(record.producer) : -1);
    json["issued"].push_back(record.issued_ns - origin_ns);
    json["start"].push_back(record.start_ns - origin_ns);
    json["end"].push_back(record.end_ns - origin_ns);
  }
  return json;
}

Json detail_json(const StepDetail& detail) {
  const StepSummary& step = detail.summary;
  const std::int64_t origin = std::min(step.host_begin_ns, step.device_begin_ns);
  Json json{{"step", step.step},
            {"origin_ns", origin},
            {"begin_event", detail.begin_event},
            {"end_event", detail.end_event},
            {"whole", detail.begin_event == step.begin_event && detail.end_event == step.end_event},
            {"host", {step.host_begin_ns - origin, step.host_end_ns - origin}},
            {"device", {step.device_begin_ns - origin, step.device_end_ns - origin}},
            {"peak", {{"event", step.peak_event}, {"bytes", step.peak_allocated}}}};
  json["blocks"] = blocks_json(detail);
  json["changes"] = changes_json(detail, origin);
  json["device_spans"] = device_spans_json(detail, origin);
  json["reserved"] = columns({"event", "host", "region", "bytes"});
  for (const ReservedChange& change : detail.reserved) {
    json["reserved"]["event"].push_back(change.event);
    json["reserved"]["host"].push_back(change.host_ns - origin);
    json["reserved"]["region"].push_back(static_cast<int>(change.region));
    json["reserved"]["bytes"].push_back(change.bytes);
  }
  json["views"] = columns({"event", "union", "shares"});
  for (const ViewChange& change : detail.views) {
    json["views"]["event"].push_back(change.event);
    json["views"]["union"].push_back(change.union_bytes);
    json["views"]["shares"].push_back(change.share_bytes);
  }
  json["marks"] = columns({"event", "host", "unit", "name"});
  for (const UnitMark& mark : detail.marks) {
    json["marks"]["event"].push_back(mark.event);
    json["marks"]["host"].push_back(mark.host_ns - origin);
    json["marks"]["unit"].push_back(mark.unit);
    json["marks"]["name"].push_back(mark.name);
  }
  json["operations"] = operations_json(detail, origin);
  json["spans"] = columns({"cause", "start", "end"});
  for (const HostSpan& span : detail.host_spans) {
    json["spans"]["cause"].push_back(static_cast<int>(span.cause));
    json["spans"]["start"].push_back(span.start_ns - origin);
    json["spans"]["end"].push_back(span.end_ns - origin);
  }
  return json;
}

Json peak_json(const PageSource& source, const RunOverview& run) {
  if (run.steps.empty()) return nullptr;
  Json json{{"statistic", "allocated_bytes.all.peak"},
            {"bytes", run.peak.allocated_bytes},
            {"event", run.peak.event},
            {"step", run.steps[run.peak_step].step},
            {"text", peak_text(run.peak, source.info.units)},
            {"blocks", Json::array()}};
  for (const LiveBlock& block : run.peak.blocks) {
    json["blocks"].push_back({{"name", block.name},
                              {"unit", source.unit(block.unit)},
                              {"category", name_of(block.tag)},
                              {"bytes", block.bytes},
                              {"storage", block.shared ? "shared" : "own"}});
  }
  return json;
}

}  // namespace

Json page_data(const PageSource& source, const RunOverview& run, const std::vector<StepDetail>& details) {
  Json json{{"format", 1}, {"rank", source.info.rank}, {"world", source.info.world}};
  json["notes"] = source.notes;
  json["names"] = source.names;
  json["units"] = source.info.units;
  json["regions"] = kRegions;
  json["causes"] = Json::array();
  for (const OperationKind& cause : kHostCauses)
    json["causes"].push_back({{"name", cause.name}, {"color", css_color(cause.color)}});
  json["bands"] = Json::array();
  for (const Band& band : bands())
    json["bands"].push_back({{"name", name_of(band.tag)}, {"color", css_color(band.color)}});
  json["kinds"] = Json::array();
  for (const OperationKind& kind : operation_kinds())
    json["kinds"].push_back({{"name", kind.name}, {"color", css_color(kind.color)}});
  json["operation_kinds"] = Json::array();
  for (const std::string& name : source.operation_names) json["operation_kinds"].push_back(kind_of(name));
  json["tags"] = Json::array();
  for (int tag = 0; tag < kTagCount; ++tag) json["tags"].push_back(name_of(static_cast<Tag>(tag)));
  json["streams"] = Json::array();
  for (const StreamInfo& stream : source.streams) {
    json["streams"].push_back(
        {{"id", stream.id}, {"name", stream.name}, {"role", kRoles[static_cast<std::size_t>(stream.role)]}});
  }
  json["statistics"] = Json::array();
  for (const auto& statistic : source.statistics) {
    json["statistics"].push_back(
        {{"name", statistic.first}, {"value", statistic.second}, {"meaning", meaning_of(statistic.first)}});
  }
  json["overview"] = overview_json(run);
  json["steps"] = Json::array();
  for (const StepDetail& detail : details) json["steps"].push_back(detail_json(detail));
  json["peak"] = peak_json(source, run);
  json["operation_names"] = source.operation_names;
  return json;
}

}  // namespace headroom::bench
