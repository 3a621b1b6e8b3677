#include "report/comparison.hpp"

#include "report/report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::bench {
namespace {

constexpr const char* kDecisive = "seconds_per_step";

bool equal(double a, double b, double tolerance) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool shards_alike(const Config& config) {
  return config.strategy == ShardStrategy::full_shard || config.strategy == ShardStrategy::shard_grad_op;
}

bool sends_bf16(const Config& config) { return config.gathered == DType::bf16 || config.reduced == DType::bf16; }

}  // namespace

const char* name_of(Equivalence equivalence) noexcept {
  return equivalence == Equivalence::bitwise ? "bitwise" : "tolerance";
}

Equivalence equivalence_of(const std::vector<std::string>& changed_keys, const Config& a, const Config& b) {
  constexpr std::array<std::string_view, 6> kRounding{"wrap",    "accumulation", "gathered",
                                                      "reduced", "ranks",        "host-threads"};
  const bool rounds = std::any_of(changed_keys.begin(), changed_keys.end(), [&](const std::string& key) {
    if (key == "shard") return !shards_alike(a) || !shards_alike(b);
    return std::find(kRounding.begin(), kRounding.end(), key) != kRounding.end();
  });
  return rounds ? Equivalence::tolerance : Equivalence::bitwise;
}

double loss_tolerance_of(const Config& a, const Config& b) noexcept {
  return sends_bf16(a) || sends_bf16(b) ? kBf16LossTolerance : kLossTolerance;
}

std::optional<std::string> first_difference(const Outcome& a, const Outcome& b, Equivalence equivalence,
                                            double loss_tolerance) {
  const double tolerance = equivalence == Equivalence::bitwise ? 0 : loss_tolerance;
  if (a.steps.size() != b.steps.size()) {
    return fmt::format("steps: {} in a, {} in b", a.steps.size(), b.steps.size());
  }
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    if (!equal(a.steps[i].loss, b.steps[i].loss, tolerance)) {
      return fmt::format("loss of step {}: {:.9g} in a, {:.9g} in b", a.steps[i].step, a.steps[i].loss,
                         b.steps[i].loss);
    }
    if (equivalence == Equivalence::tolerance) continue;
    if (!equal(a.steps[i].gradient_norm, b.steps[i].gradient_norm, 0)) {
      return fmt::format("gradient norm of step {}: {:.9g} in a, {:.9g} in b", a.steps[i].step,
                         a.steps[i].gradient_norm, b.steps[i].gradient_norm);
    }
  }
  if (equivalence == Equivalence::bitwise && a.parameters_crc32c != b.parameters_crc32c) {
    return fmt::format("parameters after the last step: crc32c {:08x} in a, {:08x} in b", a.parameters_crc32c,
                       b.parameters_crc32c);
  }
  return std::nullopt;
}

void ArmFigures::add(const Json& report, const std::vector<StepRecord>& steps) {
  const std::vector<double> seconds = measured_seconds(steps);
  step_seconds.insert(step_seconds.end(), seconds.begin(), seconds.end());
  rounds[kDecisive].push_back(quantile(seconds, 0.5));
  const Json& communication = report.at("communication");
  for (const char* name : {"completion_seconds", "exposed_seconds"}) {
    rounds[name].push_back(communication.at(name).is_null() ? 0 : communication.at(name).get<double>());
  }
  double allocated = 0;
  double reserved = 0;
  for (const Json& rank : report.at("memory").at("per_rank")) {
    allocated = std::max(allocated, rank.at("allocated_bytes.all.peak").get<double>());
    reserved = std::max(reserved, rank.at("reserved_bytes.all.peak").get<double>());
  }
  rounds["allocated_peak"].push_back(allocated);
  rounds["reserved_peak"].push_back(reserved);
}

const std::vector<std::string>& ratio_names() {
  static const std::vector<std::string> names{kDecisive, "completion_seconds", "exposed_seconds", "allocated_peak",
                                              "reserved_peak"};
  return names;
}

std::optional<Estimate> ratio_of(const ArmFigures& a, const ArmFigures& b, const std::string& name) {
  const auto of_a = a.rounds.find(name);
  const auto of_b = b.rounds.find(name);
  if (of_a == a.rounds.end() || of_b == b.rounds.end()) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(of_a->second.size(), of_b->second.size()); ++i) {
    const double ratio = of_b->second[i] / of_a->second[i];
    if (!(ratio > 0) || !std::isfinite(ratio)) return std::nullopt;
    ratios.push_back(ratio);
  }
  if (ratios.empty()) return std::nullopt;
  return estimate_ratio(ratios);
}

Verdict decide(const ArmFigures& a, const ArmFigures& b, const std::optional<std::string>& difference) {
  if (a.infeasible && b.infeasible) return {"none", "neither arm fits: " + *a.infeasible};
  if (a.infeasible) return {"a_infeasible", *a.infeasible};
  if (b.infeasible) return {"b_infeasible", *b.infeasible};
  if (difference) return {"refused", "the arms do not compute the same: " + *difference};
  const std::optional<Estimate> ratio = ratio_of(a, b, kDecisive);
  if (!ratio) return {"none", "no round was measured"};
  if (!ratio->low || !ratio->high) {
    return {"none", fmt::format("{} rounds cannot reach 95 %: at least 6 are needed", a.rounds.at(kDecisive).size())};
  }
  const std::string interval =
      fmt::format("step time b/a {:.4f}, 95 % interval [{:.4f}, {:.4f}]", ratio->median, *ratio->low, *ratio->high);
  if (*ratio->low > 1) return {"a", interval + ": a is faster"};
  if (*ratio->high < 1) return {"b", interval + ": b is faster"};
  return {"none", interval + ", which covers 1"};
}

}  // namespace headroom::bench
