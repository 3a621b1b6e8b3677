#pragma once

#include "options/config.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace headroom::bench {

struct DataOptions {
  std::vector<std::string> paths;  ///< Empty: text that the program makes.
  std::int64_t seq = 256, vocab = 256;
  Order order = Order::shuffled;
  std::uint64_t seed = 1;
  friend bool operator==(const DataOptions&, const DataOptions&) = default;
};
[[nodiscard]] DataOptions data_options(const Config& config);

/// One run of tokens, cut into windows of seq (CONTRACT section 4). Immutable; any number of threads may read.
class TokenData {
 public:
  /// Text is read as bytes, `.bin` as little-endian u16; of a folder, the regular files directly in it (not links,
  /// which would count a text twice), sorted by name. Throws: InvalidInput naming the path, and the token's offset.
  [[nodiscard]] static TokenData load(const DataOptions& options);

  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  [[nodiscard]] std::int64_t window_count() const noexcept { return (length() - 1) / options_.seq; }
  /// Of all tokens, in nats: the loss of a model that knows no more than their frequencies.
  [[nodiscard]] double unigram_entropy_nats() const noexcept { return entropy_nats_; }
  [[nodiscard]] std::span<const std::uint16_t> tokens() const noexcept { return tokens_; }
  /// What tells one run of tokens from another: "1000 tokens, crc32c 0123abcd".
  [[nodiscard]] const std::string& summary() const noexcept { return summary_; }
  /// The window that global sample `sample` takes.
  [[nodiscard]] std::int64_t window_of(std::int64_t sample) const;
  /// Samples [first_sample, first_sample + count). Shapes: tokens and targets [count * seq].
  void batch(std::int64_t first_sample, std::int64_t count, std::span<std::int32_t> tokens,
             std::span<std::int32_t> targets) const;

 private:
  explicit TokenData(DataOptions options) : options_(std::move(options)) {}
  DataOptions options_;
  std::vector<std::uint16_t> tokens_;
  double entropy_nats_ = 0;
  std::string summary_;
};

/// What the ranks of one process, and the arms of a comparison, have in common: equal options are loaded once.
/// Thread-safe.
class SharedTokenData {
 public:
  /// Loads, or waits for who does. Throws: as TokenData::load, for each caller.
  [[nodiscard]] std::shared_ptr<const TokenData> load(const DataOptions& options);

 private:
  std::mutex mutex_;
  std::vector<std::pair<DataOptions, std::shared_ptr<const TokenData>>> loaded_;
};

/// The first sample of one rank's micro-batch: ((step * accumulate + micro) * world + rank) * micro_batch.
[[nodiscard]] std::int64_t first_sample(const Config& config, std::int64_t step, std::int64_t micro, int rank);

}  // namespace headroom::bench
