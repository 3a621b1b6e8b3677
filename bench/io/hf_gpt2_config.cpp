#include "io/file_io.hpp"
#include "io/hf_gpt2.hpp"
#include "options/input_error.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

using Json = nlohmann::ordered_json;

Json read_json(const std::filesystem::path& path) {
  constexpr std::uint64_t kMostBytes = 1U << 20;
  const File file = File::open_for_reading(path);
  if (file.size() > kMostBytes)
    throw bad_input(path.string(), "at most 1 MiB of JSON", std::to_string(file.size()) + " bytes");
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())), path);
  try {
    Json json = Json::parse(text);
    if (json.is_object()) return json;
  } catch (const nlohmann::json::exception& error) {
    throw bad_input(path.string(), "a JSON object", error.what());
  }
  throw bad_input(path.string(), "a JSON object", "another value");
}

std::int64_t extent(const Json& json, const char* key, std::int64_t max, const std::string& file) {
  const std::string found = json.contains(key) ? json[key].dump() : "nothing";
  if (json.contains(key) && json[key].is_number_unsigned()) {
    const auto value = json[key].get<std::uint64_t>();
    if (value >= 1 && value <= static_cast<std::uint64_t>(max)) return static_cast<std::int64_t>(value);
  }
  throw bad_input(file + " " + key, "a whole number from 1 to " + std::to_string(max), found);
}

// A value that changes the arithmetic must be the one that Headroom's GPT has; absent, it is transformers' default.
void check_fixed(const Json& json, const std::string& file) {
  const Json fixed{
      {"model_type", "gpt2"},       {"activation_function", "gelu_new"},        {"layer_norm_epsilon", 1e-5},
      {"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false}, {"add_cross_attention", false},
      {"tie_word_embeddings", true}};
  for (const auto& item : fixed.items())
    if (json.contains(item.key()) && json[item.key()] != item.value())
      throw bad_input(file + " " + item.key(), item.value().dump(), in_quotes(json[item.key()].dump()));
}

}  // namespace

ModelShape read_gpt2_shape(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw bad_input("--init " + folder.string(), "a Hugging Face GPT-2 folder",
                    error ? error.message() : std::string("no folder"));
  const Json json = read_json(path);
  const std::string file = path.string();
  check_fixed(json, file);
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 20;
  const ModelShape shape{extent(json, "n_layer", 100'000, file), extent(json, "n_embd", kMaxExtent, file),
                         extent(json, "n_head", kMaxExtent, file),
                         extent(json, "vocab_size", std::int64_t{1} << 24, file),
                         extent(json, "n_positions", kMaxExtent, file)};
  if (json.contains("n_inner") && !json["n_inner"].is_null() && json["n_inner"] != 4 * shape.width)
    throw bad_input(file + " n_inner", "null or 4 times n_embd", in_quotes(json["n_inner"].dump()));
  if (shape.width % shape.heads != 0)
    throw bad_input(file + " n_head", "a divisor of n_embd " + std::to_string(shape.width),
                    std::to_string(shape.heads));
  return shape;
}

std::string gpt2_config_text(const ModelShape& shape) {
  const Json json{{"activation_function", "gelu_new"},
                  {"architectures", Json::array({"GPT2LMHeadModel"})},
                  {"attn_pdrop", 0.0},
                  {"bos_token_id", 0},
                  {"dtype", "float32"},
                  {"embd_pdrop", 0.0},
                  {"eos_token_id", 0},
                  {"initializer_range", 0.02},
                  {"layer_norm_epsilon", 1e-5},
                  {"model_type", "gpt2"},
                  {"n_embd", shape.width},
                  {"n_head", shape.heads},
                  {"n_inner", nullptr},
                  {"n_layer", shape.layers},
                  {"n_positions", shape.positions},
                  {"resid_pdrop", 0.0},
                  {"scale_attn_by_inverse_layer_idx", false},
                  {"scale_attn_weights", true},
                  {"tie_word_embeddings", true},
                  {"torch_dtype", "float32"},
                  {"vocab_size", shape.vocab}};
  return json.dump(2) + "\n";
}

}  // namespace headroom::bench
