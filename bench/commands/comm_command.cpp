#include "commands/comm_measure.hpp"
#include "commands/commands.hpp"
#include "io/outputs.hpp"
#include "options/agreement.hpp"
#include "options/json_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdio>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string table_head(const CommandLine& line, const Job& job) {
  return fmt::format(
      "{} ranks ({}), {}, median of {}; every result verified\n"
      "algbw, busbw: as in nccl-tests; memcpy: the busbw of ranks that copy as much in their own memory, all at once\n"
      "{:<15} {:>12} {:>12} {:>11} {:>11} {:>12} {:>7}\n",
      job.world(), job.launcher(), headroom::name_of(line.comm.dtype), line.comm.repeats, "collective", "bytes", "us",
      "algbw GB/s", "busbw GB/s", "memcpy GB/s", "share");
}

std::string table_line(const CommRow& row) {
  constexpr double kGiga = 1e9;
  const auto known = [](bool is_known, double value) { return is_known ? fmt::format("{:.3f}", value) : "-"; };
  const double limit = row.memcpy.value_or(1);
  return fmt::format("{:<15} {:>12} {:>12.1f} {:>11.3f} {:>11.3f} {:>12} {:>7}\n", name_of(row.collective), row.bytes,
                     row.seconds * 1e6, row.algbw / kGiga, row.busbw / kGiga,
                     known(row.memcpy.has_value(), limit / kGiga), known(row.memcpy.has_value(), row.busbw / limit));
}

Json row_json(const CommRow& row) {
  return {{"collective", name_of(row.collective)},
          {"bytes", row.bytes},
          {"seconds", row.seconds},
          {"algbw", row.algbw},
          {"busbw", row.busbw},
          {"memcpy", row.memcpy ? Json(*row.memcpy) : Json(nullptr)},
          {"share_of_memcpy", row.memcpy ? Json(row.busbw / *row.memcpy) : Json(nullptr)},
          {"verified", true}};
}

Json report_json(const CommandLine& line, const Job& job, const std::vector<CommRow>& rows) {
  Json json{{"headroom", {{"version", HEADROOM_VERSION}, {"report", 1}}},
            {"command", "comm"},
            {"argv", line.argv},
            {"device", job.device().name()},
            {"launcher", job.launcher()},
            {"world", job.world()},
            {"dtype", headroom::name_of(line.comm.dtype)},
            {"repeats", line.comm.repeats},
            {"unit", "bytes per second"},
            {"collectives", Json::array()}};
  for (const CommRow& row : rows) json["collectives"].push_back(row_json(row));
  return json;
}

}  // namespace

void comm_command(const CommandLine& line, RankContext context) {
  const std::string& json_path = line.config.json_path;
  const bool prints = context.control.rank() == 0 && json_path != "-";
  run_checked(context.control, [&] { check_outputs(line.config, context.control.rank(), context.control.size()); });
  CommBench bench(line, context.job, context.control);
  if (prints) std::fputs(table_head(line, context.job).c_str(), stdout);
  std::vector<CommRow> rows;
  for (std::size_t bytes = line.comm.from_bytes; bytes <= line.comm.to_bytes; bytes *= 2) {
    for (const CommRow& row : bench.measure(bytes)) {
      rows.push_back(row);
      if (prints) std::fputs(table_line(row).c_str(), stdout);
    }
    if (prints) std::fflush(stdout);
  }
  run_checked(context.control, [&] {
    if (context.control.rank() != 0) return;
    if (!json_path.empty()) write_output(json_path, dump(report_json(line, context.job, rows), 2) + "\n");
    flush_stdout();
  });
}

}  // namespace headroom::bench
