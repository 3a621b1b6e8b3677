#include "report/trace_writer.hpp"

#include "options/json_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

std::string microseconds(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string json_text(std::string_view text) { return dump(std::string(text)); }

std::string with_arguments(const std::string& arguments) {
  return arguments.empty() ? std::string() : ",\"args\":{" + arguments + '}';
}

}  // namespace

TraceWriter::TraceWriter(OutputFile& out) : out_(out) { out_.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["); }

void TraceWriter::finish() { out_.write("\n]}\n"); }

void TraceWriter::event(const std::string& text) {
  out_.write(is_first_ ? "\n" : ",\n");
  out_.write(text);
  is_first_ = false;
}

void TraceWriter::process_name(int process, const std::string& name) {
  event(fmt::format(R"({{"ph":"M","pid":{0},"tid":0,"name":"process_name","args":{{"name":{1}}}}})", process,
                    json_text(name)));
  event(fmt::format(R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
                    process));
}

void TraceWriter::thread_name(int process, int thread, const std::string& name) {
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process, thread,
                    json_text(name)));
}

void TraceWriter::slice(const Slice& slice) {
  event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{}{}}})", slice.process,
                    slice.thread, microseconds(slice.start_ns), microseconds(slice.end_ns - slice.start_ns),
                    slice.category, json_text(slice.name), with_arguments(slice.arguments)));
}

void TraceWriter::flow(char phase, int process, int thread, std::int64_t at_ns, std::uint64_t id) {
  event(fmt::format(R"({{"ph":"{}",{}"pid":{},"tid":{},"ts":{},"id":{},"cat":"wait","name":"wait"}})", phase,
                    phase == 'f' ? R"("bp":"e",)" : "", process, thread, microseconds(at_ns), id));
}

void TraceWriter::counter(int process, std::int64_t at_ns, const char* name, const std::string& arguments) {
  event(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"{}"{}}})", process, microseconds(at_ns), name,
                    with_arguments(arguments)));
}

void TraceWriter::life(char phase, int process, int thread, std::int64_t at_ns, std::uint64_t id, std::string_view name,
                       const std::string& arguments) {
  event(fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"id":"{:#x}","cat":"memory","name":{}{}}})", phase,
                    process, thread, microseconds(at_ns), id, json_text(name), with_arguments(arguments)));
}

}  // namespace headroom::bench
