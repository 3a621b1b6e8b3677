#include "report/peak_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace headroom::bench {
namespace {

using Texts = std::vector<std::string>;

std::string joined(const Texts& texts) {
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool last = i + 1 == texts.size();
    all.append(i == 0 ? "" : last ? " and " : ", ").append(texts[i]);
  }
  return all;
}

std::string unit_text(int unit, const std::string& fallback, const std::vector<std::string>& names) {
  const bool known = unit >= 0 && static_cast<std::size_t>(unit) < names.size();
  return known ? names[static_cast<std::size_t>(unit)] : fallback;
}

/// "parameters of h.5 (current) and h.4 (next)", of the blocks whose tag begins so; empty where there are none. More
/// than three units of one state are counted: "8 units (retained)".
std::string stand(const MemoryPeak& peak, const std::vector<std::string>& names, const char* what,
                  std::string_view family) {
  constexpr std::size_t kNamed = 3;
  std::map<Tag, std::size_t> count;
  for (const LiveBlock& block : peak.blocks) count[block.tag] += block.shared ? 0 : 1;
  Texts units;
  for (const LiveBlock& block : peak.blocks) {
    const std::string_view tag = name_of(block.tag);
    if (block.shared || !tag.starts_with(family) || count[block.tag] == 0) continue;
    const bool is_named = count[block.tag] <= kNamed;
    const std::string unit =
        is_named ? unit_text(block.unit, block.name, names) : fmt::format("{} units", count[block.tag]);
    units.push_back(fmt::format("{} ({})", unit, tag.substr(family.size())));
    if (!is_named) count[block.tag] = 0;
  }
  return units.empty() ? "" : fmt::format("{} of {}", what, joined(units));
}

/// The largest of the other categories.
std::string beside(const MemoryPeak& peak) {
  std::vector<std::pair<std::size_t, const char*>> others;
  for (int i = 0; i < kTagCount; ++i) {
    const std::string_view name = name_of(static_cast<Tag>(i));
    const std::size_t bytes = peak.tag_bytes[static_cast<std::size_t>(i)];
    const bool is_named = name.starts_with("parameter_full.") || name.starts_with("gradient_full.");
    if (bytes > 0 && !is_named) others.emplace_back(bytes, name.data());
  }
  std::sort(others.rbegin(), others.rend());
  Texts texts;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, others.size()); ++i) {
    texts.push_back(fmt::format("{} of {}", size_text(others[i].first), others[i].second));
  }
  return joined(texts);
}

}  // namespace

std::string size_text(std::size_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string place_text(std::int64_t step, const std::string& unit, const std::string& phase,
                       const std::string& operation) {
  std::string text = step < 0 ? "before the first step" : fmt::format("step {}", step);
  if (phase.empty() && operation.empty()) return text;
  text += ", " + (operation.empty() ? phase : operation);
  if (!unit.empty()) text += " of " + unit;
  if (phase != operation && !phase.empty() && !operation.empty()) text += " in " + phase;
  return text;
}

std::string peak_text(const MemoryPeak& peak, const std::vector<std::string>& unit_names) {
  std::string text =
      fmt::format("peak {} at event {}, {}", size_text(peak.allocated_bytes), peak.event,
                  place_text(peak.step, unit_text(peak.unit, "", unit_names), peak.phase, peak.operation));
  Texts standing;
  for (std::string part : {stand(peak, unit_names, "parameters", "parameter_full."),
                           stand(peak, unit_names, "gradients", "gradient_full.")}) {
    if (!part.empty()) standing.push_back(std::move(part));
  }
  const std::string others = beside(peak);
  if (standing.empty()) return text + (others.empty() ? "" : ": " + others + " stand together");
  return text + ": " + joined(standing) + (others.empty() ? " stand together" : " stand together, beside " + others);
}

}  // namespace headroom::bench
