#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headroom::bench {

/// The files that `paths` name, folders opened. Throws: InvalidInput on a path that cannot be read or has no files.
[[nodiscard]] std::vector<std::filesystem::path> token_files(const std::vector<std::string>& paths);

/// Appends the tokens of one file. Throws: InvalidInput naming the file and, for a token >= vocab, its offset.
void append_tokens(const std::filesystem::path& file, std::int64_t vocab, std::vector<std::uint16_t>& tokens);

/// The first token that is not below `vocab` is refused, with its place in `source`.
void check_vocabulary(const std::string& source, const std::uint16_t* tokens, std::size_t count, std::int64_t vocab,
                      std::size_t token_bytes);

}  // namespace headroom::bench
