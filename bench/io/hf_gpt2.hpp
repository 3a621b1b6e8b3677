#pragma once

#include "io/safetensors.hpp"
#include "options/config.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headroom::bench {

/// A unit of `gpt` and its tensors, by Hugging Face's names without "transformer.": `embedding` (wte.weight,
/// wpe.weight, ln_f.weight, ln_f.bias), `h.0` (h.0.ln_1.weight, ...), ...
struct Gpt2Unit {
  std::string name;
  std::vector<NamedShape> tensors;
};
/// With another wrap: `h.0.attn`, `h.0.mlp`, ..., or `h.0-1`, ..., of which the last takes what is left. The order of
/// the tensors does not depend on it.
[[nodiscard]] std::vector<Gpt2Unit> gpt2_units(const ModelShape& shape, const Wrap& wrap = {});
/// The visits of one step, as indices into `units`: the embedding is first and, as output head, last.
[[nodiscard]] std::vector<int> gpt2_forward_path(const std::vector<Gpt2Unit>& units);
[[nodiscard]] std::vector<int> gpt2_backward_path(const std::vector<Gpt2Unit>& units);

/// What `folder`/config.json says. Throws: InvalidInput on a file or a value that Headroom's GPT cannot honour.
[[nodiscard]] ModelShape read_gpt2_shape(const std::filesystem::path& folder);
/// The config.json of a model that Headroom writes.
[[nodiscard]] std::string gpt2_config_text(const ModelShape& shape);

/// A Hugging Face GPT-2 folder whose tensors were all found, with the right shapes, when it was opened.
class Gpt2Reader {
 public:
  /// Throws: InvalidInput naming every tensor that is missing, too many, or of another shape.
  explicit Gpt2Reader(const std::filesystem::path& folder);
  [[nodiscard]] const ModelShape& shape() const noexcept { return shape_; }
  /// By the name without "transformer.". Shapes: [numel].
  [[nodiscard]] std::vector<float> read(const std::string& name) const;

 private:
  ModelShape shape_;
  SafetensorsReader file_;
  std::map<std::string, std::string> stored_names_;
};

/// Writes a folder that GPT2LMHeadModel.from_pretrained loads: model.safetensors, then config.json.
class Gpt2Writer {
 public:
  /// Throws: InputOutputError.
  Gpt2Writer(std::filesystem::path folder, const ModelShape& shape);
  /// By the name without "transformer.".
  void write(const std::string& name, std::span<const float> values);
  void finish();

 private:
  std::filesystem::path folder_;
  ModelShape shape_;
  SafetensorsWriter file_;
};

}  // namespace headroom::bench
