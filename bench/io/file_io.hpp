#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace headroom::bench {

/// Owns an open file descriptor. Move-only.
class File {
 public:
  File() noexcept = default;
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  /// Throws: InvalidInput.
  [[nodiscard]] static File open_for_reading(const std::filesystem::path& path);
  /// Makes it, or empties it. Throws: InputOutputError.
  [[nodiscard]] static File create(const std::filesystem::path& path);

  [[nodiscard]] std::uint64_t size() const;
  /// Throws: InvalidInput where the file ends before, naming `path` and the offset.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes, const std::filesystem::path& path) const;
  /// Throws: InputOutputError.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes, const std::filesystem::path& path) const;
  /// To the disk. Throws: InputOutputError.
  void sync(const std::filesystem::path& path) const;
  void close() noexcept;

 private:
  int descriptor_ = -1;
};

/// `from` becomes `to`, on disk, at once. Throws: InputOutputError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
/// `text` under the name `path`, complete or not at all. Throws: InputOutputError.
void write_durably(const std::filesystem::path& path, const std::string& text);

}  // namespace headroom::bench
