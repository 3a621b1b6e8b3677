#include "io/safetensors_header.hpp"

#include "options/input_error.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace headroom::bench {
namespace {

using nlohmann::json;
using Entries = std::map<std::string, SafetensorsReader::Entry>;

constexpr int kDeepest = 3;  // {"name": {"shape": [...]}}

std::optional<std::uint64_t> bytes_of_dtype(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> known{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  const auto found = known.find(dtype);
  if (found == known.end()) return std::nullopt;
  return found->second;
}

/// Parses, and refuses what the format excludes but JSON allows: a duplicate key, deep nesting, a NUL.
json parse_strictly(const std::string& header, const std::string& file) {
  if (!header.starts_with("{")) throw bad_input(file, "a header that begins with '{' at offset 8", "another byte");
  const std::size_t nul = header.find('\0');
  if (nul != std::string::npos) throw bad_input(file, "a header of text", "a NUL at offset " + std::to_string(8 + nul));
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kDeepest) throw bad_input(file, "a flat header", "one that is nested deeper than a shape");
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      throw bad_input(file, "each name once in the header", "a second " + in_quotes(value.get<std::string>()));
    return true;
  };
  try {
    return json::parse(header, check);
  } catch (const json::exception& error) {
    throw bad_input(file, "a header of JSON", error.what());
  }
}

std::vector<std::uint64_t> whole_numbers(const json& value, const std::string& where) {
  if (!value.is_array()) throw bad_input(where, "an array", value.type_name());
  std::vector<std::uint64_t> numbers;
  for (const json& item : value) {
    if (!item.is_number_unsigned()) throw bad_input(where, "whole numbers from 0 to 2^64 - 1", in_quotes(item.dump()));
    numbers.push_back(item.get<std::uint64_t>());
  }
  return numbers;
}

SafetensorsReader::Entry read_entry(const json& value, const std::string& where) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !value.contains("data_offsets"))
    throw bad_input(where, "exactly dtype, shape and data_offsets", in_quotes(value.dump()));
  SafetensorsReader::Entry entry;
  entry.dtype = value["dtype"].get<std::string>();
  const std::vector<std::uint64_t> offsets = whole_numbers(value["data_offsets"], where + " data_offsets");
  if (offsets.size() != 2 || offsets[1] < offsets[0])
    throw bad_input(where + " data_offsets", "a begin and an end that is not before it",
                    in_quotes(value["data_offsets"].dump()));
  entry.begin = offsets[0];
  entry.end = offsets[1];

  const std::optional<std::uint64_t> element_bytes = bytes_of_dtype(entry.dtype);
  if (!element_bytes) throw bad_input(where + " dtype", "one of the format's", in_quotes(entry.dtype));
  std::uint64_t bytes = *element_bytes;
  for (const std::uint64_t extent : whole_numbers(value["shape"], where + " shape")) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (extent > kMost || (extent != 0 && bytes > kMost / extent))
      throw bad_input(where + " shape", "fewer than 2^63 bytes", in_quotes(value["shape"].dump()));
    bytes *= extent;
    entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (entry.end - entry.begin != bytes)
    throw bad_input(where, std::to_string(bytes) + " bytes for its shape and dtype",
                    std::to_string(entry.end - entry.begin));
  return entry;
}

void check_metadata(const json& metadata, const std::string& where) {
  const auto is_text = [](const json& item) { return item.is_string(); };
  if (!metadata.is_object() || !std::all_of(metadata.begin(), metadata.end(), is_text))
    throw bad_input(where, "texts by name", in_quotes(metadata.dump()));
}

// No gap, no overlap, nothing beyond: each byte of the data belongs to one tensor.
void check_cover(const Entries& entries, std::uint64_t data_bytes, const std::string& file) {
  std::vector<std::pair<std::string, SafetensorsReader::Entry>> sorted(entries.begin(), entries.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });
  std::uint64_t end = 0;
  for (const auto& [name, entry] : sorted) {
    if (entry.begin != end)
      throw bad_input(file + " tensor " + in_quotes(name), "its data at offset " + std::to_string(end) + " of the data",
                      std::to_string(entry.begin));
    end = entry.end;
  }
  if (end != data_bytes)
    throw bad_input(file, std::to_string(end) + " bytes of data after the header", std::to_string(data_bytes));
}

}  // namespace

Entries parse_safetensors_header(const std::string& header, std::uint64_t data_bytes,
                                 const std::filesystem::path& path) {
  const std::string file = path.string();
  const json parsed = parse_strictly(header, file);
  Entries entries;
  for (const auto& item : parsed.items()) {
    const std::string where = file + " tensor " + in_quotes(item.key());
    if (item.key() == "__metadata__") {
      check_metadata(item.value(), file + " __metadata__");
    } else {
      entries.emplace(item.key(), read_entry(item.value(), where));
    }
  }
  check_cover(entries, data_bytes, file);
  return entries;
}

}  // namespace headroom::bench
