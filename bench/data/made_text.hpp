#pragma once

#include <cstddef>
#include <string>

namespace headroom::bench {

/// English-like text from a small grammar: words with uneven frequencies, agreement, rhyme and repetition, so that a
/// model has something to learn at every distance. Always the same.
[[nodiscard]] std::string made_text(std::size_t bytes);

}  // namespace headroom::bench
