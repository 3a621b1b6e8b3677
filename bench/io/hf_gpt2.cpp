#include "io/hf_gpt2.hpp"

#include "options/input_error.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>

namespace headroom::bench {
namespace {

constexpr const char* kPrefix = "transformer.";
constexpr const char* kHead = "lm_head.weight";

/// Half 2 i is the attention of block i, half 2 i + 1 its MLP.
std::vector<NamedShape> half_tensors(std::int64_t half, std::int64_t width) {
  const std::string name = "h." + std::to_string(half / 2);
  if (half % 2 == 0) {
    return {{name + ".ln_1.weight", {width}},
            {name + ".ln_1.bias", {width}},
            {name + ".attn.c_attn.weight", {width, 3 * width}},
            {name + ".attn.c_attn.bias", {3 * width}},
            {name + ".attn.c_proj.weight", {width, width}},
            {name + ".attn.c_proj.bias", {width}}};
  }
  return {{name + ".ln_2.weight", {width}},
          {name + ".ln_2.bias", {width}},
          {name + ".mlp.c_fc.weight", {width, 4 * width}},
          {name + ".mlp.c_fc.bias", {4 * width}},
          {name + ".mlp.c_proj.weight", {4 * width, width}},
          {name + ".mlp.c_proj.bias", {width}}};
}

std::string unit_name(std::int64_t first_half, std::int64_t end_half, const Wrap& wrap) {
  const std::string first = "h." + std::to_string(first_half / 2);
  if (wrap.kind == Wrap::Kind::half) return first + (first_half % 2 == 0 ? ".attn" : ".mlp");
  const std::int64_t last = end_half / 2 - 1;
  return last == first_half / 2 ? first : first + "-" + std::to_string(last);
}

std::vector<NamedShape> stored_tensors(const ModelShape& shape) {
  std::vector<NamedShape> tensors;
  for (const Gpt2Unit& unit : gpt2_units(shape))
    for (const NamedShape& tensor : unit.tensors) tensors.push_back({kPrefix + tensor.name, tensor.shape});
  return tensors;
}

std::string to_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

// Buffers that old transformers versions saved beside the parameters.
bool is_mask(const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

/// What is wrong with the tensors of a file, as one text, and where each tensor lies in it.
class TensorMatch {
 public:
  TensorMatch(const SafetensorsReader& file, const ModelShape& shape) {
    std::set<std::string> used;
    for (const Gpt2Unit& unit : gpt2_units(shape)) {
      for (const NamedShape& tensor : unit.tensors) {
        const std::string stored = file.entries().contains(tensor.name) ? tensor.name : kPrefix + tensor.name;
        const auto found = file.entries().find(stored);
        if (found == file.entries().end()) {
          add(tensor.name + " is missing");
          continue;
        }
        used.insert(stored);
        names_[tensor.name] = stored;
        check(tensor, found->second);
      }
    }
    for (const auto& item : file.entries())
      if (!used.contains(item.first) && !is_mask(item.first) && item.first != kHead)
        add(item.first + " is no tensor of this model");
  }

  [[nodiscard]] std::map<std::string, std::string> names_or_throw(const std::filesystem::path& path) const {
    if (problems_ == 0) return names_;
    const std::string more = problems_ > kNamed ? " and " + std::to_string(problems_ - kNamed) + " more" : "";
    throw bad_input(path.string(), "the tensors that config.json describes", text_ + more);
  }

 private:
  static constexpr int kNamed = 32;

  void check(const NamedShape& tensor, const SafetensorsReader::Entry& entry) {
    if (entry.shape != tensor.shape)
      add(tensor.name + " of shape " + to_text(entry.shape) + " instead of " + to_text(tensor.shape));
    if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16")
      add(tensor.name + " of dtype " + entry.dtype + " instead of F32, F16 or BF16");
  }
  void add(const std::string& problem) {
    if (++problems_ <= kNamed) text_ += (text_.empty() ? "" : "; ") + problem;
  }

  std::map<std::string, std::string> names_;
  std::string text_;
  int problems_ = 0;
};

// A head of its own would be lost: it must be the tied one.
void check_head(const SafetensorsReader& file, const std::string& wte) {
  if (!file.entries().contains(kHead)) return;
  const std::vector<float> head = file.read_f32(kHead), embedding = file.read_f32(wte);
  if (head.size() != embedding.size() || std::memcmp(head.data(), embedding.data(), head.size() * sizeof(float)) != 0)
    throw bad_input(file.path().string() + " tensor 'lm_head.weight'", "the values of wte.weight (tied embeddings)",
                    "others");
}

}  // namespace

std::vector<Gpt2Unit> gpt2_units(const ModelShape& shape, const Wrap& wrap) {
  std::vector<Gpt2Unit> units;
  units.push_back({"embedding",
                   {{"wte.weight", {shape.vocab, shape.width}},
                    {"wpe.weight", {shape.positions, shape.width}},
                    {"ln_f.weight", {shape.width}},
                    {"ln_f.bias", {shape.width}}}});
  const std::int64_t halves = 2 * shape.layers;
  for (std::int64_t first = 0; first < halves; first += wrap.halves_per_unit()) {
    const std::int64_t end = std::min(halves, first + wrap.halves_per_unit());
    Gpt2Unit unit{unit_name(first, end, wrap), {}};
    for (std::int64_t half = first; half < end; ++half)
      for (const NamedShape& tensor : half_tensors(half, shape.width)) unit.tensors.push_back(tensor);
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<int> gpt2_forward_path(const std::vector<Gpt2Unit>& units) {
  std::vector<int> path(units.size());
  std::iota(path.begin(), path.end(), 0);
  path.push_back(0);
  return path;
}

std::vector<int> gpt2_backward_path(const std::vector<Gpt2Unit>& units) {
  std::vector<int> path = gpt2_forward_path(units);
  std::reverse(path.begin(), path.end());
  return path;
}

Gpt2Reader::Gpt2Reader(const std::filesystem::path& folder)
    : shape_(read_gpt2_shape(folder)),
      file_(folder / "model.safetensors"),
      stored_names_(TensorMatch(file_, shape_).names_or_throw(file_.path())) {
  check_head(file_, stored_names_.at("wte.weight"));
}

std::vector<float> Gpt2Reader::read(const std::string& name) const {
  const auto stored = stored_names_.find(name);
  if (stored == stored_names_.end()) throw std::logic_error("Gpt2Reader: no tensor " + name);
  return file_.read_f32(stored->second);
}

Gpt2Writer::Gpt2Writer(std::filesystem::path folder, const ModelShape& shape)
    : folder_(std::move(folder)), shape_(shape), file_(folder_ / "model.safetensors", stored_tensors(shape)) {}

void Gpt2Writer::write(const std::string& name, std::span<const float> values) { file_.write(kPrefix + name, values); }

void Gpt2Writer::finish() {
  file_.finish();
  write_durably(folder_ / "config.json", gpt2_config_text(shape_));
}

}  // namespace headroom::bench
