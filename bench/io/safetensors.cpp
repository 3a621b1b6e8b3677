#include "io/safetensors.hpp"

#include "io/safetensors_header.hpp"
#include "options/input_error.hpp"

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace headroom::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian, and read as they are");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // The format's own limit.

float from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign == 0 ? magnitude : -magnitude;
}

float from_bf16(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

}  // namespace

std::int64_t NamedShape::numel() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

SafetensorsReader::SafetensorsReader(std::filesystem::path path) : path_(std::move(path)) {
  const File file = File::open_for_reading(path_);
  const std::uint64_t size = file.size();
  std::uint64_t header_bytes = 0;
  if (size < sizeof header_bytes)
    throw bad_input(path_.string(), "at least 8 bytes of a safetensors file", std::to_string(size));
  file.read_at(0, std::as_writable_bytes(std::span(&header_bytes, 1)), path_);
  if (header_bytes > kMaxHeaderBytes)
    throw bad_input(path_.string(), "a header of at most 100000000 bytes at offset 0", std::to_string(header_bytes));
  if (header_bytes > size - sizeof header_bytes)
    throw bad_input(path_.string(), "a header of " + std::to_string(header_bytes) + " bytes at offset 8",
                    std::to_string(size - sizeof header_bytes) + " before the end of the file");
  std::string header(header_bytes, '\0');
  file.read_at(sizeof header_bytes, std::as_writable_bytes(std::span(header.data(), header.size())), path_);
  data_begin_ = sizeof header_bytes + header_bytes;
  entries_ = parse_safetensors_header(header, size - data_begin_, path_);
}

std::vector<float> SafetensorsReader::read_f32(const std::string& name) const {
  const auto found = entries_.find(name);
  const std::string where = path_.string() + " tensor " + in_quotes(name);
  if (found == entries_.end()) throw bad_input(where, "to be in the file", "no such tensor");
  const Entry& entry = found->second;
  const File file = File::open_for_reading(path_);
  if (entry.dtype == "F32") {
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    file.read_at(data_begin_ + entry.begin, std::as_writable_bytes(std::span(values)), path_);
    return values;
  }
  const bool is_f16 = entry.dtype == "F16";
  if (!is_f16 && entry.dtype != "BF16") throw bad_input(where, "dtype F32, F16 or BF16", entry.dtype);
  std::vector<std::uint16_t> halves((entry.end - entry.begin) / sizeof(std::uint16_t));
  file.read_at(data_begin_ + entry.begin, std::as_writable_bytes(std::span(halves)), path_);
  std::vector<float> values;
  values.reserve(halves.size());
  for (const std::uint16_t half : halves) values.push_back(is_f16 ? from_f16(half) : from_bf16(half));
  return values;
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, const std::vector<NamedShape>& tensors)
    : path_(std::move(path)), temporary_(path_.string() + ".partial") {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const NamedShape& tensor : tensors)
    if (!shapes.emplace(tensor.name, tensor.shape).second)
      throw std::logic_error("SafetensorsWriter: tensor " + tensor.name + " is announced twice");

  nlohmann::ordered_json json{{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end = 0;
  for (const auto& [name, shape] : shapes) {
    const std::int64_t numel = NamedShape{name, shape}.numel();
    places_[name] = {end, numel, false};
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(numel) * sizeof(float);
    json[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, end}}};
  }
  std::string header = json.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = header.size();
  for (auto& [name, place] : places_) place.offset_bytes += sizeof header_bytes + header_bytes;

  file_ = File::create(temporary_);
  file_.write_at(0, std::as_bytes(std::span(&header_bytes, 1)), temporary_);
  file_.write_at(sizeof header_bytes, std::as_bytes(std::span(header.data(), header.size())), temporary_);
}

SafetensorsWriter::~SafetensorsWriter() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void SafetensorsWriter::write(const std::string& name, std::span<const float> values) {
  const auto place = places_.find(name);
  if (place == places_.end() || place->second.numel != static_cast<std::int64_t>(values.size()))
    throw std::logic_error("SafetensorsWriter: tensor " + name + " was not announced with this size");
  file_.write_at(place->second.offset_bytes, std::as_bytes(values), temporary_);
  place->second.written = true;
}

void SafetensorsWriter::finish() {
  for (const auto& [name, place] : places_)
    if (!place.written) throw std::logic_error("SafetensorsWriter: tensor " + name + " was not written");
  file_.sync(temporary_);
  file_.close();
  rename_durably(temporary_, path_);
  temporary_.clear();
}

}  // namespace headroom::bench
