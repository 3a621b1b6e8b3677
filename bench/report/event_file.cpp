#include "report/event_file.hpp"

#include <headroom/crc32c.hpp>
#include <headroom/error.hpp>

#include <spdlog/fmt/fmt.h>

#include <bit>
#include <cstring>
#include <type_traits>

namespace headroom::bench {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<AllocatorEvent>);

constexpr std::string_view kMagic = "HRMEVENT";
constexpr std::uint32_t kVersion = 1;

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_table(std::string& out, const std::vector<std::string>& table) {
  for (const std::string& text : table) {
    put(out, static_cast<std::uint32_t>(text.size()));
    out += text;
  }
}

std::uint32_t checksum(std::string_view bytes) { return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))); }

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw InvalidInput(fmt::format("event file {}: {} at offset {}", source_, what, offset_));
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - offset_) {
      refuse(fmt::format("expected {} more bytes, found {}", count, bytes_.size() - offset_));
    }
    const std::string_view taken = bytes_.substr(offset_, count);
    offset_ += count;
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<std::string> table(std::uint32_t count) {
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) texts.emplace_back(take(number<std::uint32_t>()));
    return texts;
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - offset_; }

 private:
  std::string_view bytes_;
  const std::string& source_;
  std::size_t offset_ = 0;
};

}  // namespace

std::string encode_events(const EventFile& file) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, static_cast<std::uint32_t>(sizeof(AllocatorEvent)));
  put(out, file.rank);
  put(out, file.world);
  put(out, file.dropped);
  put(out, static_cast<std::uint64_t>(file.events.size()));
  put(out, static_cast<std::uint32_t>(file.names.size()));
  put(out, static_cast<std::uint32_t>(file.units.size()));
  put_table(out, file.names);
  put_table(out, file.units);
  out.append(reinterpret_cast<const char*>(file.events.data()), file.events.size() * sizeof(AllocatorEvent));
  put(out, checksum(out));
  return out;
}

EventFile decode_events(std::string_view bytes, const std::string& source) {
  Reader reader(bytes, source);
  if (reader.take(kMagic.size()) != kMagic) reader.refuse("not a Headroom event file");
  if (reader.number<std::uint32_t>() != kVersion) reader.refuse("a version that is not 1");
  if (reader.number<std::uint32_t>() != sizeof(AllocatorEvent)) reader.refuse("records of another size");
  constexpr std::size_t kCrcBytes = sizeof(std::uint32_t);
  if (reader.left() < kCrcBytes) reader.refuse("no checksum");
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - kCrcBytes, kCrcBytes);
  if (stored != checksum(bytes.substr(0, bytes.size() - kCrcBytes))) reader.refuse("checksum does not match");

  EventFile file;
  file.rank = reader.number<std::uint32_t>();
  file.world = reader.number<std::uint32_t>();
  file.dropped = reader.number<std::uint64_t>();
  const auto count = reader.number<std::uint64_t>();
  const auto names = reader.number<std::uint32_t>();
  const auto units = reader.number<std::uint32_t>();
  file.names = reader.table(names);
  file.units = reader.table(units);
  if (reader.left() != kCrcBytes + count * sizeof(AllocatorEvent)) reader.refuse("another number of records");
  file.events.resize(count);
  if (count > 0)
    std::memcpy(file.events.data(), reader.take(count * sizeof(AllocatorEvent)).data(), count * sizeof(AllocatorEvent));
  return file;
}

}  // namespace headroom::bench
