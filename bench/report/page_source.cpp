#include "report/page_source.hpp"

namespace headroom::bench {

std::string PageSource::unit(int index) const {
  const bool known = index >= 0 && static_cast<std::size_t>(index) < info.units.size();
  return known ? info.units[static_cast<std::size_t>(index)] : std::string();
}

void PageSource::visit(const Visitor& visitor) const {
  RecordingReader reader(path);
  while (reader.next()) {
    if (visitor.event)
      for (const AllocatorEvent& event : reader.events()) visitor.event(event);
    if (visitor.operation)
      for (const RecordedOperation& operation : reader.operations()) visitor.operation(operation);
    if (visitor.span)
      for (const HostSpan& span : reader.host_spans()) visitor.span(span);
  }
}

PageSource open_recording(const std::string& path) {
  PageSource source;
  source.path = path;
  RecordingReader reader(path);
  while (reader.next()) {
  }
  source.info = reader.info();
  source.names = reader.names();
  source.operation_names = reader.operation_names();
  source.streams = reader.streams();
  source.notes = reader.notes();
  source.statistics = reader.statistics();
  return source;
}

}  // namespace headroom::bench
