#pragma once

#include "io/output_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace headroom::bench {

/// Writes one Python pickle, protocol 2, of dictionaries, lists, strings and numbers, in the few opcodes that
/// memory_viz reads. A string is written once, and named after that. Throws: InputOutputError.
class PickleWriter {
 public:
  using Memo = std::uint32_t;

  explicit PickleWriter(OutputFile& out);
  /// Writes what is left; the file can be closed.
  void finish();

  void begin_dictionary();  ///< Then, in turn, a key (text) and its value.
  void end_dictionary();
  void begin_list();
  void end_list();
  void text(std::string_view text);
  void integer(std::int64_t value);
  void number(double value);
  void boolean(bool value);
  void pair(std::int64_t first, std::int64_t second);
  /// Names the value just written.
  [[nodiscard]] Memo memoize();
  /// That value again.
  void again(Memo memo);

  void item(std::string_view key, std::string_view value);
  void item(std::string_view key, std::int64_t value);

 private:
  void put(char opcode) { buffer_ += opcode; }
  void put_little(std::uint64_t value, int bytes);
  void spill();

  OutputFile& out_;
  std::string buffer_;
  std::unordered_map<std::string, Memo> texts_;
  Memo next_memo_ = 0;
};

}  // namespace headroom::bench
