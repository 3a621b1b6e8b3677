#include "runtime/memory/recording_file.hpp"

#include <headroom/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace headroom::detail {
namespace {

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

ChunkFile::ChunkFile(const std::string& path) : path_(path) {
  const auto unreadable = [&](const std::string& found) {
    throw InvalidInput("event file " + path + ": expected a file that can be read, found: " + found);
  };
  // O_NONBLOCK: a pipe in the file's place is refused below, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) unreadable(std::strerror(errno));
  struct stat status {};
  const bool is_regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (is_regular) file_ = ::fdopen(descriptor, "rb");
  if (file_ == nullptr) {
    ::close(descriptor);
    unreadable(S_ISDIR(status.st_mode) ? "a folder" : "no regular file");
  }
  try {
    FileHeader header;
    read(header.magic.data(), header.magic.size(), "of a file that begins with HRMEVENT");
    if (std::string_view(header.magic.data(), header.magic.size()) != kRecordingMagic)
      refuse("a file that begins with HRMEVENT", "another", 0);
    read(reinterpret_cast<char*>(&header.version), sizeof header.version, "of the version");
    if (header.version != kRecordingVersion)
      refuse("version " + std::to_string(kRecordingVersion), "version " + std::to_string(header.version), 8);
    read(reinterpret_cast<char*>(&header.event_bytes), sizeof header.event_bytes, "of the events' size");
    if (header.event_bytes != sizeof(AllocatorEvent))
      refuse("events of " + bytes_text(sizeof(AllocatorEvent)), "events of " + bytes_text(header.event_bytes), 12);
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

ChunkFile::~ChunkFile() { std::fclose(file_); }

void ChunkFile::refuse(const std::string& expected, const std::string& found, std::uint64_t offset) const {
  throw BadFile("event file " + path_ + ": expected " + expected + ", found " + found + " at offset " +
                std::to_string(offset));
}

void ChunkFile::read(char* into, std::size_t bytes, const char* what) {
  const std::size_t got = std::fread(into, 1, bytes, file_);
  if (got < bytes && std::ferror(file_) != 0) {
    throw InputOutputError("event file " + path_ + ": expected to read " + bytes_text(bytes) +
                           ", found: " + std::strerror(errno) + " at offset " + std::to_string(offset_));
  }
  if (got < bytes) refuse(bytes_text(bytes) + ' ' + what, "the end of the file after " + bytes_text(got), offset_);
  offset_ += bytes;
}

ChunkHeader ChunkFile::next() {
  const std::uint64_t begin = offset_;
  ChunkHeader header;
  read(reinterpret_cast<char*>(&header), sizeof header, "of a chunk's header");
  if (header.payload_bytes > kMaxPayloadBytes)
    refuse("a chunk of at most " + bytes_text(kMaxPayloadBytes), bytes_text(header.payload_bytes), begin);
  payload_.resize(header.payload_bytes);
  read(payload_.data(), payload_.size(), "of a chunk");
  if (header.crc32c != chunk_checksum(header, payload_)) refuse("a chunk with its checksum", "another", begin);
  return header;
}

void ChunkFile::expect_end() {
  if (std::fgetc(file_) != EOF) refuse("the end of the file", "more bytes", offset_);
}

void PayloadCursor::expect_records(std::size_t record_bytes) const {
  if (count_ * record_bytes != file_.payload().size())
    refuse(std::to_string(count_) + " records of " + bytes_text(record_bytes), bytes_text(file_.payload().size()));
}

std::string_view PayloadCursor::take(std::size_t bytes) {
  const std::string_view left = std::string_view(file_.payload()).substr(at_);
  if (bytes > left.size()) refuse(bytes_text(bytes) + " more in this chunk", bytes_text(left.size()));
  at_ += bytes;
  return left.substr(0, bytes);
}

void PayloadCursor::expect_whole() const {
  const std::size_t left = file_.payload().size() - at_;
  if (left != 0)
    refuse("the end of the chunk after " + std::to_string(count_) + " records", bytes_text(left) + " more");
}

void PayloadCursor::refuse(const std::string& expected, const std::string& found) const {
  file_.refuse(expected, found, file_.payload_offset() + at_);
}

}  // namespace headroom::detail
