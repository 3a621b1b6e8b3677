#pragma once

#include "runtime/memory/recording_format.hpp"

#include <headroom/error.hpp>
#include <headroom/recording.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace headroom {

/// A file that goes away with the test.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / std::string("headroom-recording-")
                                                         .append(std::to_string(::getpid()))
                                                         .append("-")
                                                         .append(std::to_string(count++));
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string bytes() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void cut(std::size_t length) const { std::filesystem::resize_file(path_, length); }
  void put(std::size_t at, char byte) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)).put(byte);
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

 private:
  std::filesystem::path path_;
};

/// What is wrong with the file, as its one error says; empty: nothing.
inline std::string fault_of(const TemporaryFile& file) {
  try {
    static_cast<void>(read_recording(file.path()));
  } catch (const BadFile& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("event file " + file.path() + ": expected "), 0U) << what;
    EXPECT_NE(what.find(" at offset "), std::string::npos) << what;
    return what;
  }
  return {};
}

// Parts of recordings, with the sums that they should have.

inline std::string header(std::uint32_t version = detail::kRecordingVersion, std::uint32_t event_bytes = 72) {
  return std::string(detail::kRecordingMagic).append(detail::bytes_of(version)).append(detail::bytes_of(event_bytes));
}

inline std::string chunk(detail::ChunkKind kind, std::uint32_t count, const std::string& payload) {
  detail::ChunkHeader chunk_header{static_cast<std::uint32_t>(kind), count, static_cast<std::uint32_t>(payload.size())};
  chunk_header.crc32c = detail::chunk_checksum(chunk_header, payload);
  return std::string(detail::bytes_of(chunk_header)).append(payload);
}

template <class Record>
std::string one(detail::ChunkKind kind, const Record& record) {
  return chunk(kind, 1, std::string(detail::bytes_of(record)));
}

inline std::string text(const std::string& content) {
  return std::string(detail::bytes_of(static_cast<std::uint32_t>(content.size()))).append(content);
}

template <class Change>
std::string event(const Change& change, std::uint64_t number = 0) {
  AllocatorEvent made;
  made.number = number;
  made.bytes = made.requested_bytes = 512;
  change(made);
  return one(detail::ChunkKind::events, made);
}

template <class Change>
std::string operation(const Change& change) {
  RecordedOperation made;
  change(made);
  return chunk(detail::ChunkKind::operation_names, 1, text("gather")) + one(detail::ChunkKind::operations, made);
}

}  // namespace headroom
