#pragma once

#include "runtime/memory/recording_format.hpp"

#include <cstdio>
#include <string>

namespace headroom::detail {

/// A recording as a run of checked chunks. Throws: InvalidInput, InputOutputError, BadFile, as RecordingReader.
class ChunkFile {
 public:
  explicit ChunkFile(const std::string& path);
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  /// Reads the next chunk, whose payload is `payload()`.
  ChunkHeader next();
  void expect_end();
  [[nodiscard]] const std::string& payload() const noexcept { return payload_; }
  [[nodiscard]] std::uint64_t payload_offset() const noexcept { return offset_ - payload_.size(); }
  [[noreturn]] void refuse(const std::string& expected, const std::string& found, std::uint64_t offset) const;

 private:
  void read(char* into, std::size_t bytes, const char* what);

  std::string path_;
  std::FILE* file_ = nullptr;
  std::uint64_t offset_ = 0;
  std::string payload_;
};

/// The values of one chunk's payload, in order.
class PayloadCursor {
 public:
  PayloadCursor(const ChunkFile& file, const ChunkHeader& header) : file_(file), count_(header.count) {}

  /// Of records whose bytes are all alike. Checks that they are the whole payload.
  template <class Record>
  [[nodiscard]] std::vector<Record> records() {
    expect_records(sizeof(Record));
    std::vector<Record> all(count_);
    file_.payload().copy(reinterpret_cast<char*>(all.data()), file_.payload().size());
    at_ = file_.payload().size();
    return all;
  }
  template <class Number>
  [[nodiscard]] Number number() {
    Number value{};
    take(sizeof value).copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  [[nodiscard]] std::string text() { return std::string(take(number<std::uint32_t>())); }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  void expect_whole() const;
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;

 private:
  void expect_records(std::size_t record_bytes) const;
  [[nodiscard]] std::string_view take(std::size_t bytes);

  const ChunkFile& file_;
  std::uint32_t count_;
  std::size_t at_ = 0;
};

}  // namespace headroom::detail
