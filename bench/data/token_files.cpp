#include "data/token_files.hpp"

#include "options/input_error.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace headroom::bench {
namespace {

namespace fs = std::filesystem;

std::string data_option(const fs::path& path) { return "--data " + path.string(); }

std::vector<fs::path> files_of_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::size_t links = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored)) {
      ++links;
    } else if (entry->is_regular_file(ignored)) {
      files.push_back(entry->path());
    }
  }
  if (error) throw bad_input(data_option(folder), "a folder that can be read", error.message());
  if (files.empty())
    throw bad_input(data_option(folder), "regular files in the folder",
                    links == 0 ? "none" : "only " + std::to_string(links) + " links",
                    "Links and folders inside it are not followed.");
  std::sort(files.begin(), files.end());
  return files;
}

// Before it is read: data that cannot fit is refused at once.
std::uint64_t checked_size(const fs::path& path, bool is_binary, std::size_t tokens_before) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error) throw bad_input(data_option(path), "a file that can be read", error.message());
  const auto memory_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t most_tokens = memory_bytes / 4 / sizeof(std::uint16_t);
  const std::uint64_t tokens = is_binary ? size / sizeof(std::uint16_t) : size;
  if (tokens > most_tokens || tokens_before > most_tokens - tokens)
    throw bad_input(
        data_option(path),
        "at most " + std::to_string(most_tokens) + " tokens in all (u16, in a quarter of this machine's memory)",
        std::to_string(tokens) + " in this file");
  return size;
}

}  // namespace

std::vector<fs::path> token_files(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& name : paths) {
    const fs::path path(name);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found || status.type() == fs::file_type::none)
      throw bad_input(data_option(path), "a file or a folder", error ? error.message() : std::string("nothing there"));
    if (fs::is_directory(status)) {
      const std::vector<fs::path> inside = files_of_folder(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (fs::is_regular_file(status)) {
      files.push_back(path);
    } else {
      throw bad_input(data_option(path), "a regular file or a folder", "a device, pipe or socket");
    }
  }
  return files;
}

void check_vocabulary(const std::string& source, const std::uint16_t* tokens, std::size_t count, std::int64_t vocab,
                      std::size_t token_bytes) {
  const std::uint16_t* beyond = std::find_if(tokens, tokens + count, [&](std::uint16_t t) { return t >= vocab; });
  if (beyond == tokens + count) return;
  throw bad_input(source, "tokens below --vocab " + std::to_string(vocab),
                  "token " + std::to_string(*beyond) + " at byte " +
                      std::to_string(static_cast<std::size_t>(beyond - tokens) * token_bytes),
                  "Set --vocab to more than the largest token.");
}

void append_tokens(const fs::path& file, std::int64_t vocab, std::vector<std::uint16_t>& tokens) {
  const bool is_binary = file.extension() == ".bin";
  const std::uint64_t size = checked_size(file, is_binary, tokens.size());
  if (is_binary && size % 2 != 0)
    throw bad_input(data_option(file), "u16 tokens, so an even number of bytes", std::to_string(size));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw bad_input(data_option(file), "a file that can be read", std::strerror(errno));

  const std::size_t first = tokens.size();
  tokens.reserve(first + static_cast<std::size_t>(is_binary ? size / 2 : size));
  std::array<unsigned char, 1U << 16> bytes{};
  std::uint64_t done = 0;
  while (done < size) {
    const auto want = static_cast<std::streamsize>(std::min<std::uint64_t>(bytes.size(), size - done));
    if (!stream.read(reinterpret_cast<char*>(bytes.data()), want))
      throw bad_input(data_option(file), std::to_string(size) + " bytes",
                      std::to_string(done + static_cast<std::uint64_t>(stream.gcount())) + ", and then an error");
    const auto got = static_cast<std::size_t>(want);
    if (is_binary) {
      for (std::size_t i = 0; i < got; i += 2)
        tokens.push_back(static_cast<std::uint16_t>(bytes[i] | bytes[i + 1] << 8));
    } else {
      for (std::size_t i = 0; i < got; ++i) tokens.push_back(bytes[i]);
    }
    done += got;
  }
  check_vocabulary(data_option(file), tokens.data() + first, tokens.size() - first, vocab, is_binary ? 2 : 1);
}

}  // namespace headroom::bench
