#pragma once

#include "io/output_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom::bench {

/// Chrome's JSON array of events, one a line. Times in nanoseconds, written as microseconds, exactly.
class TraceWriter {
 public:
  explicit TraceWriter(OutputFile& out);
  void finish();

  void process_name(int process, const std::string& name);
  void thread_name(int process, int thread, const std::string& name);
  struct Slice {
    int process = 0, thread = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    const char* category = "";
    std::string_view name;
    std::string arguments;  ///< JSON, or empty.
  };
  void slice(const Slice& slice);
  /// `phase`: 's' or 'f', each within a slice of that thread.
  void flow(char phase, int process, int thread, std::int64_t at_ns, std::uint64_t id);
  void counter(int process, std::int64_t at_ns, const char* name, const std::string& arguments);
  /// `phase`: 'b' or 'e', of the same id, thread and name.
  void life(char phase, int process, int thread, std::int64_t at_ns, std::uint64_t id, std::string_view name,
            const std::string& arguments);

 private:
  void event(const std::string& text);

  OutputFile& out_;
  bool is_first_ = true;
};

}  // namespace headroom::bench
