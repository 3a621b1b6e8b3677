#include "report/pickle.hpp"

#include <bit>

namespace headroom::bench {
namespace {

// Named as pickletools names them.
constexpr char kProto = '\x80', kStop = '.', kMark = '(', kEmptyDict = '}', kSetItems = 'u', kEmptyList = ']';
constexpr char kAppends = 'e', kBinUnicode = 'X', kBinInt1 = 'K', kBinInt2 = 'M', kBinInt = 'J', kLong1 = '\x8a';
constexpr char kBinFloat = 'G', kNewTrue = '\x88', kNewFalse = '\x89', kTuple2 = '\x86';
constexpr char kBinPut = 'q', kLongBinPut = 'r', kBinGet = 'h', kLongBinGet = 'j';
constexpr char kProtocol = 2;

}  // namespace

PickleWriter::PickleWriter(OutputFile& out) : out_(out) {
  put(kProto);
  put(kProtocol);
}

void PickleWriter::finish() {
  put(kStop);
  out_.write(buffer_);
  buffer_.clear();
}

void PickleWriter::spill() {
  constexpr std::size_t kBuffer = std::size_t{1} << 16;
  if (buffer_.size() < kBuffer) return;
  out_.write(buffer_);
  buffer_.clear();
}

void PickleWriter::put_little(std::uint64_t value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8U) buffer_ += static_cast<char>(value & 0xFFU);
}

void PickleWriter::begin_dictionary() {
  put(kEmptyDict);
  put(kMark);
}

void PickleWriter::end_dictionary() {
  put(kSetItems);
  spill();
}

void PickleWriter::begin_list() {
  put(kEmptyList);
  put(kMark);
}

void PickleWriter::end_list() { put(kAppends); }

void PickleWriter::text(std::string_view text) {
  const auto [place, is_new] = texts_.try_emplace(std::string(text), next_memo_);
  if (!is_new) return again(place->second);
  put(kBinUnicode);
  put_little(text.size(), 4);
  buffer_ += text;
  static_cast<void>(memoize());
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value <= UINT8_MAX) {
    put(kBinInt1);
    put_little(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value <= UINT16_MAX) {
    put(kBinInt2);
    put_little(static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    put(kBinInt);
    put_little(static_cast<std::uint64_t>(value), 4);
  } else {
    put(kLong1);
    put(8);
    put_little(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::number(double value) {
  put(kBinFloat);  // big-endian
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) put_little(bits >> static_cast<unsigned>(shift), 1);
}

void PickleWriter::boolean(bool value) { put(value ? kNewTrue : kNewFalse); }

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  integer(first);
  integer(second);
  put(kTuple2);
}

PickleWriter::Memo PickleWriter::memoize() {
  const bool is_short = next_memo_ <= UINT8_MAX;
  put(is_short ? kBinPut : kLongBinPut);
  put_little(next_memo_, is_short ? 1 : 4);
  return next_memo_++;
}

void PickleWriter::again(Memo memo) {
  const bool is_short = memo <= UINT8_MAX;
  put(is_short ? kBinGet : kLongBinGet);
  put_little(memo, is_short ? 1 : 4);
}

void PickleWriter::item(std::string_view key, std::string_view value) {
  text(key);
  text(value);
}

void PickleWriter::item(std::string_view key, std::int64_t value) {
  text(key);
  integer(value);
}

}  // namespace headroom::bench
