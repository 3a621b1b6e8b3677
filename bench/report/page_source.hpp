#pragma once

#include <headroom/recording.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace headroom::bench {

/// A recording, for people to look at: all that the page and the picture know. Records stay in the file.
struct PageSource {
  std::string path;
  RecordingInfo info;
  std::vector<std::string> names, operation_names;
  std::vector<StreamInfo> streams;
  std::map<std::string, std::string> notes;
  NamedStatistics statistics;

  [[nodiscard]] std::string unit(int index) const;  ///< Empty: none.

  struct Visitor {
    std::function<void(const AllocatorEvent&)> event = nullptr;
    std::function<void(const RecordedOperation&)> operation = nullptr;
    std::function<void(const HostSpan&)> span = nullptr;
  };
  /// Reads the file once: events in order, operations and spans in that of the file.
  void visit(const Visitor& visitor) const;
};

/// Throws: BadFile, InvalidInput, InputOutputError, as RecordingReader.
[[nodiscard]] PageSource open_recording(const std::string& path);

}  // namespace headroom::bench
