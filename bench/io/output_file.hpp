#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace headroom::bench {

/// A file that is written from its start to its end. Throws: InputOutputError naming it.
class OutputFile {
 public:
  explicit OutputFile(std::string path);  ///< Makes it, or empties it.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void close();  ///< After it everything is in the file.

 private:
  [[noreturn]] void fail(const std::string& action) const;

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace headroom::bench
