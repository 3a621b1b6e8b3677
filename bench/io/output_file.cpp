#include "io/output_file.hpp"

#include <headroom/error.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

namespace headroom::bench {

OutputFile::OutputFile(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wbe")) {
  if (file_ == nullptr) fail("create the file");
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void OutputFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail("write " + std::to_string(bytes.size()) + " bytes");
}

void OutputFile::close() {
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("write the last bytes");
}

void OutputFile::fail(const std::string& action) const {
  throw InputOutputError(path_ + ": expected to " + action + ", found: " + std::strerror(errno) + ".");
}

}  // namespace headroom::bench
