#include "io/file_io.hpp"

#include "options/input_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace headroom::bench {
namespace {

namespace fs = std::filesystem;

InputOutputError failed(const fs::path& path, const std::string& what) {
  return InputOutputError(path.string() + ": expected to " + what + ", found: " + std::strerror(errno) + ".");
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void File::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

File File::open_for_reading(const fs::path& path) {
  // O_NONBLOCK: a pipe in the file's place is refused below, not waited for.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor_ < 0) throw bad_input(path.string(), "a file that can be read", std::strerror(errno));
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
    throw bad_input(path.string(), "a regular file", S_ISDIR(status.st_mode) ? "a folder" : "something else");
  return file;
}

File File::create(const fs::path& path) {
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.descriptor_ < 0) throw failed(path, "create the file");
  return file;
}

std::uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

void File::read_at(std::uint64_t offset, std::span<std::byte> bytes, const fs::path& path) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw bad_input(path.string(), std::to_string(bytes.size()) + " bytes at offset " + std::to_string(offset),
                      got == 0 ? "the end of the file" : std::strerror(errno));
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes, const fs::path& path) const {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      throw failed(path, "write " + std::to_string(bytes.size()) + " bytes at offset " + std::to_string(offset));
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void File::sync(const fs::path& path) const {
  if (::fsync(descriptor_) != 0) throw failed(path, "reach the disk");
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw failed(to, "take the place of an older file");
  const fs::path folder = to.has_parent_path() ? to.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw failed(folder, "open the folder");
  File(descriptor).sync(folder);
}

void write_durably(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + ".partial";
  File file = File::create(temporary);
  file.write_at(0, std::as_bytes(std::span(text.data(), text.size())), temporary);
  file.sync(temporary);
  file.close();
  rename_durably(temporary, path);
}

}  // namespace headroom::bench
