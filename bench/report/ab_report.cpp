#include "report/ab_report.hpp"

#include "options/json_text.hpp"

#include "report/report.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>

namespace headroom::bench {
namespace {

Json arm_json(const ArmResult& arm) {
  if (arm.report.is_null()) return nullptr;
  Json json = arm.report;
  if (!arm.figures.step_seconds.empty()) json["seconds_per_step"] = seconds_per_step_json(arm.figures.step_seconds);
  return json;
}

Json estimate_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return {{"median", nullptr}, {"low", nullptr}, {"high", nullptr}};
  return {{"median", estimate->median},
          {"low", estimate->low ? Json(*estimate->low) : Json(nullptr)},
          {"high", estimate->high ? Json(*estimate->high) : Json(nullptr)}};
}

std::optional<double> median_of(const ArmFigures& arm, const std::string& name) {
  const auto found = arm.rounds.find(name);
  if (found == arm.rounds.end() || found->second.empty()) return std::nullopt;
  return quantile(found->second, 0.5);
}

std::string ratio_text(const std::optional<Estimate>& ratio) {
  if (!ratio) return "-";
  if (!ratio->low || !ratio->high) return fmt::format("{:.4f}", ratio->median);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", ratio->median, *ratio->low, *ratio->high);
}

std::string line(const std::string& what, const std::string& a, const std::string& b, const std::string& ratio) {
  return fmt::format("{:<22} {:>14} {:>14}   {}\n", what, a, b, ratio);
}

/// A figure of both reports, as it is.
std::string figures_line(const AbResult& result, const char* what, const char* pointer) {
  const auto text = [pointer](const Json& report) {
    return report.is_null() ? std::string("-") : dump(report.at(Json::json_pointer(pointer)));
  };
  return line(what, text(result.a.report), text(result.b.report), "");
}

}  // namespace

Json ab_json(const AbResult& result) {
  const Verdict verdict = decide(result.a.figures, result.b.figures, result.difference);
  const bool both_ran = !result.a.figures.infeasible && !result.b.figures.infeasible;
  Json json;
  json["a"] = arm_json(result.a);
  json["b"] = arm_json(result.b);
  json["arms"] = {{"a", result.a.label}, {"b", result.b.label}};
  json["changed"] = result.changed;
  json["class"] = name_of(result.equivalence);
  json["equivalent"] = both_ran ? Json(!result.difference) : Json(nullptr);
  json["first_difference"] = result.difference ? Json(*result.difference) : Json(nullptr);
  json["rounds"] = result.rounds;
  json["order"] = result.order;
  for (const std::string& name : ratio_names()) {
    json["ratio"][name] = estimate_json(ratio_of(result.a.figures, result.b.figures, name));
  }
  json["round_seconds"] = {{"a", Json::array()}, {"b", Json::array()}};
  for (const auto& arm : {std::pair{"a", &result.a}, std::pair{"b", &result.b}}) {
    const auto found = arm.second->figures.rounds.find("seconds_per_step");
    if (found != arm.second->figures.rounds.end()) json["round_seconds"][arm.first] = found->second;
  }
  json["verdict"] = verdict.verdict;
  json["because"] = verdict.because;
  json["notes"] = result.notes;
  return json;
}

std::string ab_table(const AbResult& result) {
  struct Row {
    const char* what;
    const char* name;
    double scale;
    int digits;
  };
  constexpr double kMebibyte = 1024.0 * 1024.0;
  constexpr std::array<Row, 5> kRows{{{"step time, ms", "seconds_per_step", 1e3, 2},
                                      {"completion, ms", "completion_seconds", 1e3, 2},
                                      {"exposed, ms", "exposed_seconds", 1e3, 2},
                                      {"peak allocated, MiB", "allocated_peak", 1 / kMebibyte, 1},
                                      {"peak reserved, MiB", "reserved_peak", 1 / kMebibyte, 1}}};
  std::string text = fmt::format("a: {}\nb: {}\n", result.a.label, result.b.label);
  text += line("median of the rounds", "a", "b", "b/a [95 % interval]");
  for (const Row& row : kRows) {
    const auto value = [&row](const ArmFigures& arm) {
      const std::optional<double> median = median_of(arm, row.name);
      return median ? fmt::format("{:.{}f}", *median * row.scale, row.digits) : std::string("-");
    };
    text += line(row.what, value(result.a.figures), value(result.b.figures),
                 ratio_text(ratio_of(result.a.figures, result.b.figures, row.name)));
  }
  text += figures_line(result, "parameter sets live", "/memory/sets_peak/parameters");
  text += figures_line(result, "gradient sets live", "/memory/sets_peak/gradients");
  text += figures_line(result, "visits that waited", "/availability/late");
  if (!result.a.figures.infeasible && !result.b.figures.infeasible) {
    text += fmt::format("updates: {} ({})\n", result.difference ? "differ" : "equal", name_of(result.equivalence));
  }
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  const Verdict verdict = decide(result.a.figures, result.b.figures, result.difference);
  return text + fmt::format("verdict: {} ({})\n", verdict.verdict, verdict.because);
}

}  // namespace headroom::bench
