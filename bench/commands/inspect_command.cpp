#include "commands/commands.hpp"
#include "io/outputs.hpp"
#include "options/json_text.hpp"
#include "report/inspection.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"
#include "report/snapshot_file.hpp"
#include "report/trace_file.hpp"

#include <cstdio>

namespace headroom::bench {

void inspect_command(const CommandLine& line) {
  const InspectOptions& options = line.inspect;
  const InstantChoice choice = parse_instant(options.at);
  check_outputs(line.config, 0, 1, {}, InputFile{"EVENTS", options.path});
  const Inspection found = inspect(options.path, choice, options.device_clock ? Clock::device : Clock::issue);
  const std::string& json = line.config.json_path;
  if (json != "-") std::fputs(to_text(found, options.units).c_str(), stdout);
  if (const auto path = output_path(line.config.snapshot_path, 0))
    write_snapshot(options.path, *path, {.first_step = options.steps.first, .last_step = options.steps.last});
  if (const auto path = output_path(line.config.trace_path, 0)) write_trace({options.path}, *path);
  if (!json.empty()) write_output(json, dump(to_json(found), 2) + "\n");
  if (const std::string& page = line.config.report_path; !page.empty()) write_output(page, report_page(options.path));
  if (const std::string& picture = line.config.png_path; !picture.empty())
    write_output(picture, report_picture(options.path));
}

}  // namespace headroom::bench
