#pragma once

#include "io/file_io.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headroom::bench {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
  [[nodiscard]] std::int64_t numel() const noexcept;
};

/// A safetensors file that passed every check of the format: sizes, offsets without gap or overlap, shapes that fit
/// dtypes, no duplicate name, nothing after the last byte. Reads one tensor at a time.
class SafetensorsReader {
 public:
  struct Entry {
    std::string dtype;  ///< "F32", ...
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;  ///< Bytes, from the start of the data.
  };
  /// Throws: InvalidInput naming the file and the offset or tensor.
  explicit SafetensorsReader(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const noexcept { return entries_; }
  /// F32, F16 and BF16 as f32. Throws: InvalidInput on another dtype or a name that is not there.
  [[nodiscard]] std::vector<float> read_f32(const std::string& name) const;

 private:
  std::filesystem::path path_;
  std::map<std::string, Entry> entries_;
  std::uint64_t data_begin_ = 0;
};

/// Writes f32 tensors, in any order, into a file that appears under its name only when it is complete and on disk.
/// Without finish(), the destructor removes what was written.
class SafetensorsWriter {
 public:
  /// Throws: InputOutputError.
  SafetensorsWriter(std::filesystem::path path, const std::vector<NamedShape>& tensors);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();
  /// Throws: std::logic_error on a name or size that was not announced; InputOutputError.
  void write(const std::string& name, std::span<const float> values);
  /// Throws: std::logic_error where a tensor was not written; InputOutputError.
  void finish();

 private:
  struct Place {
    std::uint64_t offset_bytes = 0;
    std::int64_t numel = 0;
    bool written = false;
  };
  std::filesystem::path path_, temporary_;
  std::map<std::string, Place> places_;
  File file_;
};

}  // namespace headroom::bench
