#include "commands/run_files.hpp"

#include "io/outputs.hpp"
#include "report/event_file.hpp"
#include "report/report.hpp"
#include "report/trace_file.hpp"

#include <sstream>

namespace headroom::bench {

void write_run_files(Run& run, const Job& job, const std::string& arm) {
  const std::vector<std::string> units = unit_names(run.parameters());
  if (const auto path = output_path(with_arm(run.config().trace_path, arm), job.rank())) {
    std::ostringstream text;
    write_trace(text, {job.rank(), &run.device().trace(), &run.memory(), units});
    write_output(*path, text.str());
  }
  if (const auto path = output_path(with_arm(run.config().events_path, arm), job.rank())) {
    EventFile file;
    file.rank = static_cast<std::uint32_t>(job.rank());
    file.world = static_cast<std::uint32_t>(job.world());
    file.dropped = run.memory().dropped_events();
    file.names = run.memory().names();
    file.units = units;
    file.events = run.memory().events();
    write_output(*path, encode_events(file));
  }
}

}  // namespace headroom::bench
