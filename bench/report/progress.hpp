#pragma once

#include <string>

namespace headroom::bench {

/// One line on stderr that is overwritten; nothing where stderr is not a terminal, or when quiet.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& text);
  void clear();  ///< Before something else is printed.

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace headroom::bench
