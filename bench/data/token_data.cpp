#include "data/token_data.hpp"

#include "data/made_text.hpp"
#include "data/permutation.hpp"
#include "data/token_files.hpp"
#include "options/input_error.hpp"

#include <headroom/crc32c.hpp>

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>
#include <stdexcept>

namespace headroom::bench {
namespace {

constexpr std::size_t kMadeBytes = 400'000;

double entropy_nats(const std::vector<std::uint16_t>& tokens) {
  std::vector<std::uint64_t> counts(std::size_t{1} << 16);
  for (const std::uint16_t token : tokens) ++counts[token];
  const auto total = static_cast<double>(tokens.size());
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double share = static_cast<double>(count) / total;
    if (count > 0) sum -= share * std::log(share);
  }
  return sum;
}

}  // namespace

DataOptions data_options(const Config& config) {
  return {config.data, config.seq, config.model.vocab, config.order, config.seed};
}

TokenData TokenData::load(const DataOptions& options) {
  TokenData data(options);
  if (options.paths.empty()) {
    const std::string text = made_text(kMadeBytes);
    for (const char c : text) data.tokens_.push_back(static_cast<unsigned char>(c));
    check_vocabulary("the text that the program makes", data.tokens_.data(), data.tokens_.size(), options.vocab, 1);
  }
  for (const auto& file : token_files(options.paths)) append_tokens(file, options.vocab, data.tokens_);
  if (data.length() < options.seq + 1)
    throw bad_input(options.paths.empty() ? "--seq" : "--data " + options.paths.front(),
                    "at least --seq + 1 = " + std::to_string(options.seq + 1) + " tokens (one window)",
                    std::to_string(data.length()));
  data.entropy_nats_ = entropy_nats(data.tokens_);
  data.summary_ =
      fmt::format("{} tokens, crc32c {:08x}", data.length(), crc32c(std::as_bytes(std::span(data.tokens_))));
  return data;
}

std::int64_t TokenData::window_of(std::int64_t sample) const {
  if (sample < 0) throw std::logic_error("TokenData: a sample before the first");
  const std::int64_t count = window_count();
  if (options_.order == Order::sequential) return sample % count;
  constexpr std::uint64_t kStride = 0x9E3779B97F4A7C15ULL;  // Keys of successive epochs far apart.
  const std::uint64_t key =
      (options_.seed + 1) * kStride ^ static_cast<std::uint64_t>(sample / count) * 0xD1B54A32D192ED03ULL;
  return static_cast<std::int64_t>(
      permute(static_cast<std::uint64_t>(sample % count), static_cast<std::uint64_t>(count), key));
}

void TokenData::batch(std::int64_t first_sample, std::int64_t count, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
  const auto seq = static_cast<std::size_t>(options_.seq);
  const std::size_t needed = static_cast<std::size_t>(count) * seq;
  if (count < 0 || tokens.size() != needed || targets.size() != needed)
    throw std::logic_error("TokenData: tokens and targets need count * seq elements");
  for (std::int64_t row = 0; row < count; ++row) {
    const std::size_t begin = static_cast<std::size_t>(window_of(first_sample + row)) * seq;
    const std::size_t out = static_cast<std::size_t>(row) * seq;
    for (std::size_t i = 0; i < seq; ++i) {
      tokens[out + i] = tokens_[begin + i];
      targets[out + i] = tokens_[begin + i + 1];
    }
  }
}

std::shared_ptr<const TokenData> SharedTokenData::load(const DataOptions& options) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : loaded_)
    if (entry.first == options) return entry.second;
  loaded_.emplace_back(options, std::make_shared<const TokenData>(TokenData::load(options)));
  return loaded_.back().second;
}

std::int64_t first_sample(const Config& config, std::int64_t step, std::int64_t micro, int rank) {
  return ((step * config.accumulate + micro) * config.ranks + rank) * config.micro_batch;
}

}  // namespace headroom::bench
