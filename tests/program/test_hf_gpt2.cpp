#include "io/hf_gpt2.hpp"
#include "program/subprocess.hpp"

#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

using headroom::testing::read_file;
using headroom::testing::TemporaryFolder;

const char* const kTiny = HEADROOM_SOURCE_DIR "/tests/gpt2_reference/tiny";
constexpr ModelShape kSmall{1, 4, 2, 8, 6};

std::string refusal(const std::string& folder) {
  try {
    const Gpt2Reader reader(folder);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

// As `names` maps them; an empty name leaves the tensor out.
template <class Rename>
void write_tensors(const TemporaryFolder& folder, const Rename& rename) {
  std::vector<NamedShape> tensors;
  for (const Gpt2Unit& unit : gpt2_units(kSmall))
    for (const NamedShape& tensor : unit.tensors) {
      const std::string name = rename(tensor.name);
      if (!name.empty()) tensors.push_back({name, tensor.shape});
    }
  SafetensorsWriter writer(folder.path("model.safetensors"), tensors);
  for (const NamedShape& tensor : tensors)
    writer.write(tensor.name, std::vector<float>(static_cast<std::size_t>(tensor.numel()), 0.5F));
  writer.finish();
}

void write_config(const TemporaryFolder& folder, const std::string& key = "", const nlohmann::json& value = nullptr) {
  nlohmann::json json = nlohmann::json::parse(gpt2_config_text(kSmall));
  if (!key.empty()) json[key] = value;
  static_cast<void>(folder.file("config.json", json.dump()));
}

std::string same(const std::string& name) { return name; }

TEST(Gpt2Reader, FolderOfTransformers_IsRead) {
  const Gpt2Reader reader(kTiny);
  EXPECT_EQ(reader.shape(), (ModelShape{2, 32, 2, 256, 64}));
  std::int64_t numel = 0;
  for (const Gpt2Unit& unit : gpt2_units(reader.shape()))
    for (const NamedShape& tensor : unit.tensors) {
      const std::vector<float> values = reader.read(tensor.name);
      EXPECT_EQ(static_cast<std::int64_t>(values.size()), tensor.numel()) << tensor.name;
      numel += tensor.numel();
    }
  EXPECT_EQ(numel * 4, 142'848);  // The data of the file: nothing is left out.
}

TEST(Gpt2Writer, WhatWasRead_IsTheSameFileButForItsConfig) {
  const TemporaryFolder folder;
  const Gpt2Reader reader(kTiny);
  {
    Gpt2Writer writer(folder.path(), reader.shape());
    for (const Gpt2Unit& unit : gpt2_units(reader.shape()))
      for (const NamedShape& tensor : unit.tensors) writer.write(tensor.name, reader.read(tensor.name));
    writer.finish();
  }
  EXPECT_EQ(read_file(folder.path("model.safetensors")), read_file(std::string(kTiny) + "/model.safetensors"));
  EXPECT_EQ(Gpt2Reader(folder.path()).shape(), reader.shape());
}

TEST(Gpt2Writer, Config_HasTheValuesOfTransformersOwn) {
  const auto theirs = nlohmann::json::parse(read_file(std::string(kTiny) + "/config.json"));
  const auto mine = nlohmann::json::parse(gpt2_config_text(read_gpt2_shape(kTiny)));
  for (const auto& item : mine.items()) {
    const bool is_theirs = theirs.contains(item.key());
    EXPECT_TRUE(!is_theirs || item.value() == theirs[item.key()]) << item.key();
  }
  for (const char* key : {"model_type", "architectures", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head"})
    EXPECT_TRUE(mine.contains(key)) << key;
}

TEST(Gpt2Reader, NamesWithoutPrefixMasksAndTiedHead_AreRead) {
  const TemporaryFolder folder;
  write_config(folder);
  write_tensors(folder, same);
  EXPECT_EQ(refusal(folder.path()), "");

  std::vector<NamedShape> tensors{
      {"h.0.attn.bias", {1, 1, 6, 6}}, {"h.0.attn.masked_bias", {}}, {"lm_head.weight", {8, 4}}};
  for (const Gpt2Unit& unit : gpt2_units(kSmall))
    tensors.insert(tensors.end(), unit.tensors.begin(), unit.tensors.end());
  const auto write = [&](float head) {
    SafetensorsWriter writer(folder.path("model.safetensors"), tensors);
    for (const NamedShape& tensor : tensors)
      writer.write(tensor.name, std::vector<float>(static_cast<std::size_t>(tensor.numel()),
                                                   tensor.name == "lm_head.weight" ? head : 0.5F));
    writer.finish();
  };
  write(0.5F);
  EXPECT_EQ(refusal(folder.path()), "");
  write(0.25F);
  EXPECT_NE(refusal(folder.path()).find("lm_head.weight"), std::string::npos);
}

TEST(Gpt2Reader, MissingForeignAndMisshapenTensors_AreAllNamed) {
  const TemporaryFolder folder;
  write_config(folder, "n_positions", 7);
  write_tensors(folder, [](const std::string& name) {
    if (name == "h.0.ln_1.bias") return std::string();
    if (name == "h.0.mlp.c_fc.bias") return std::string("h.0.mlp.other");
    return "transformer." + name;
  });
  const std::string text = refusal(folder.path());
  EXPECT_NE(text.find("h.0.ln_1.bias is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("h.0.mlp.c_fc.bias is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("h.0.mlp.other is no tensor"), std::string::npos) << text;
  EXPECT_NE(text.find("wpe.weight of shape [6, 4] instead of [7, 4]"), std::string::npos) << text;
}

// Values that another GPT would have: honoured or refused, never ignored.
TEST(Gpt2Reader, ConfigThatChangesTheArithmetic_IsRefusedNamingTheKey) {
  struct Case {
    const char* key;
    nlohmann::json value;
  };
  const Case cases[] = {{"model_type", "llama"},
                        {"activation_function", "relu"},
                        {"layer_norm_epsilon", 1e-6},
                        {"scale_attn_weights", false},
                        {"scale_attn_by_inverse_layer_idx", true},
                        {"tie_word_embeddings", false},
                        {"n_inner", 17},
                        {"n_head", 3},
                        {"n_head", 0},
                        {"n_layer", -1},
                        {"n_embd", "4"},
                        {"vocab_size", 1e300},
                        {"n_positions", nullptr}};
  for (const Case& wrong : cases) {
    const TemporaryFolder folder;
    write_config(folder, wrong.key, wrong.value);
    write_tensors(folder, same);
    EXPECT_NE(refusal(folder.path()).find(wrong.key), std::string::npos) << wrong.key << " " << wrong.value;
  }
}

TEST(Gpt2Reader, FolderWithoutItsFiles_IsRefusedNamingTheFile) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder.path()).find("config.json"), std::string::npos);
  static_cast<void>(folder.file("config.json", "{"));
  EXPECT_NE(refusal(folder.path()).find("JSON"), std::string::npos);
  static_cast<void>(folder.file("config.json", "[]"));
  EXPECT_NE(refusal(folder.path()).find("a JSON object"), std::string::npos);
  write_config(folder);
  EXPECT_NE(refusal(folder.path()).find("model.safetensors"), std::string::npos);
}

std::vector<std::string> unit_names(const std::vector<Gpt2Unit>& units) {
  std::vector<std::string> names;
  for (const Gpt2Unit& unit : units) names.push_back(unit.name);
  return names;
}

TEST(Gpt2Units, Paths_VisitTheEmbeddingFirstAndLast) {
  const std::vector<Gpt2Unit> units = gpt2_units({2, 4, 2, 8, 6});
  EXPECT_EQ(gpt2_forward_path(units), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(gpt2_backward_path(units), (std::vector<int>{0, 2, 1, 0}));
}

// CONTRACT section 4's names; the last unit takes what is left, and a unit of one block is named like a block.
TEST(Gpt2Units, Wrapped_AreNamedByTheirBlocks) {
  using Names = std::vector<std::string>;
  const ModelShape shape{5, 4, 2, 8, 6};
  const auto names = [&](const Wrap& wrap) { return unit_names(gpt2_units(shape, wrap)); };
  EXPECT_EQ(names({}), (Names{"embedding", "h.0", "h.1", "h.2", "h.3", "h.4"}));
  EXPECT_EQ(names({Wrap::Kind::half}), (Names{"embedding", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "h.2.attn",
                                              "h.2.mlp", "h.3.attn", "h.3.mlp", "h.4.attn", "h.4.mlp"}));
  EXPECT_EQ(names({Wrap::Kind::blocks, 1}), names({}));
  EXPECT_EQ(names({Wrap::Kind::blocks, 2}), (Names{"embedding", "h.0-1", "h.2-3", "h.4"}));
  EXPECT_EQ(names({Wrap::Kind::blocks, 3}), (Names{"embedding", "h.0-2", "h.3-4"}));
  EXPECT_EQ(names({Wrap::Kind::blocks, 5}), (Names{"embedding", "h.0-4"}));
}

// So a checksum over parameters in registration order, and a file, mean the same under any wrapping.
TEST(Gpt2Units, OrderOfTensors_IsThatOfBlocks) {
  const ModelShape shape{3, 4, 2, 8, 6};
  const auto tensors = [&](const Wrap& wrap) {
    std::vector<std::string> names;
    for (const Gpt2Unit& unit : gpt2_units(shape, wrap))
      for (const NamedShape& tensor : unit.tensors) names.push_back(tensor.name);
    return names;
  };
  EXPECT_EQ(tensors({Wrap::Kind::half}), tensors({}));
  EXPECT_EQ(tensors({Wrap::Kind::blocks, 2}), tensors({}));
}

}  // namespace
}  // namespace headroom::bench
