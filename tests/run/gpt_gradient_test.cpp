// The whole model's gradient against finite differences of its loss, one parameter tensor at a time.
#include "io/hf_gpt2.hpp"
#include "workloads/gpt.hpp"

#include <headroom/communicator.hpp>
#include <headroom/optimizer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>

namespace headroom::bench {
namespace {

constexpr GptShape kShape{2, 8, 2, 11, 6, 2};
constexpr BatchShape kBatch{3, 6};

/// A model whose every parameter the test knows.
class Model {
 public:
  explicit Model(const Job& job, int halves_per_unit)
      : memory_(job.device()),
        compute_(job.device()),
        tensors_(memory_, compute_),
        gpt_({kShape.layers, kShape.width, kShape.heads, kShape.vocabulary, kShape.positions, halves_per_unit}),
        parameters_(job.communicators(), memory_, compute_.ref()) {
    gpt_.add_units(parameters_);
    parameters_.set_policy(backward_pre());
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal(0, 0.4F);
    for (int unit = 0; unit < parameters_.unit_count(); ++unit) {
      std::vector<std::vector<float>>& tensors = values_.emplace_back();
      for (const ParameterSpec& spec : parameters_.layout(unit).parameters) {
        std::vector<float>& tensor = tensors.emplace_back(static_cast<std::size_t>(spec.numel()));
        for (float& value : tensor) value = spec.initializer.mean + normal(random);
      }
    }
    // x + lr * g / (|g| + eps) with eps = lr far above |g| is x + g, near enough: the optimizer hands over its
    // gradient.
    gradient_reader_.emplace(parameters_, AdamWOptions{kHuge, 0.9F, 0.95F, kHuge, 0, 0});
  }

  [[nodiscard]] ParameterManager& parameters() { return parameters_; }
  [[nodiscard]] std::vector<std::vector<std::vector<float>>>& values() { return values_; }

  /// The loss at values(); the parameters are moved by minus the gradient.
  double step() {
    for (std::size_t unit = 0; unit < values_.size(); ++unit) {
      for (std::size_t index = 0; index < values_[unit].size(); ++index) {
        parameters_.write(static_cast<int>(unit), static_cast<int>(index), values_[unit][index]);
      }
    }
    const Tensor tokens = tensors_.make("tokens", Category::input, -1, {kBatch.tokens(), 1, 1, 1}, DType::i32);
    const Tensor targets = tensors_.make("targets", Category::input, -1, {kBatch.tokens(), 1, 1, 1}, DType::i32);
    for (std::int64_t i = 0; i < kBatch.tokens(); ++i) {
      tokens.view.as<std::int32_t>()[i] = static_cast<std::int32_t>((i * 5 + 2) % kShape.vocabulary);
      targets.view.as<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7 + 1) % kShape.vocabulary);
    }
    StepTransaction step = parameters_.begin_step();
    gpt_.run(step, {kBatch, tokens.view, targets.view, 1.0 / static_cast<double>(kBatch.tokens())}, tensors_);
    const StepReport report = step.commit(*gradient_reader_);
    const double loss = report.loss();
    compute_.ref().synchronize();
    return loss;
  }

  /// Before minus after the one step that the optimizer's moments were zero for.
  std::vector<std::vector<std::vector<float>>> first_gradient() {
    step();
    auto gradients = values_;
    for (int unit = 0; unit < parameters_.unit_count(); ++unit) {
      parameters_.read(unit, [&](int index, std::span<const float> after) {
        auto& before = gradients[static_cast<std::size_t>(unit)][static_cast<std::size_t>(index)];
        for (std::size_t i = 0; i < before.size(); ++i) before[i] -= after[i];
      });
    }
    return gradients;
  }

 private:
  static constexpr float kHuge = 1e4F;
  CachingAllocator memory_;
  Stream compute_;
  TensorSource tensors_;
  Gpt gpt_;
  ParameterManager parameters_;
  std::optional<AdamW> gradient_reader_;
  std::vector<std::vector<std::vector<float>>> values_;
};

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

/// Along its own gradient, the loss must rise by the gradient's norm.
void check_tensor(Model& model, std::vector<float>& tensor, const std::vector<float>& gradient, const char* name) {
  SCOPED_TRACE(name);
  constexpr double kStep = 2e-2;
  const double length = norm(gradient);
  const std::vector<float> before = tensor;
  const auto loss_at = [&](double distance) {
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      tensor[i] = before[i] + static_cast<float>(distance * static_cast<double>(gradient[i]) / length);
    }
    const double loss = model.step();
    tensor = before;
    return loss;
  };
  const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_GT(length, 1e-3);
  EXPECT_NEAR(slope, length, 0.01 * length + 2e-4);
}

void check_model(int halves_per_unit) {
  run_ranks(1, {}, {}, [halves_per_unit](Job& job) {
    Model model(job, halves_per_unit);
    const auto gradients = model.first_gradient();
    for (std::size_t unit = 0; unit < gradients.size(); ++unit) {
      const FlatLayout& layout = model.parameters().layout(static_cast<int>(unit));
      for (std::size_t index = 0; index < gradients[unit].size(); ++index) {
        check_tensor(model, model.values()[unit][index], gradients[unit][index], layout.parameters[index].name.c_str());
      }
    }
    model.parameters().finish();
  });
}

TEST(Gpt, Backward_EqualsFiniteDifferences) { check_model(2); }
TEST(Gpt, BackwardOfHalvesApart_EqualsFiniteDifferences) { check_model(1); }
TEST(Gpt, BackwardOfWideUnits_EqualsFiniteDifferences) { check_model(3); }

TEST(Gpt, Units_HaveHuggingFaceNamesAndShapes) {
  run_ranks(1, {}, {}, [](Job& job) {
    Model model(job, 2);
    const std::vector<Gpt2Unit> expected =
        gpt2_units({kShape.layers, kShape.width, kShape.heads, kShape.vocabulary, kShape.positions});
    ASSERT_EQ(model.parameters().unit_count(), static_cast<int>(expected.size()));
    for (std::size_t unit = 0; unit < expected.size(); ++unit) {
      const FlatLayout& layout = model.parameters().layout(static_cast<int>(unit));
      EXPECT_EQ(layout.unit, expected[unit].name);
      ASSERT_EQ(layout.parameters.size(), expected[unit].tensors.size());
      for (std::size_t index = 0; index < layout.parameters.size(); ++index) {
        EXPECT_EQ(layout.parameters[index].name, expected[unit].tensors[index].name);
        EXPECT_EQ(layout.parameters[index].shape, expected[unit].tensors[index].shape);
      }
    }
    model.parameters().finish();
  });
}

TEST(Gpt, HeadsThatDoNotDivideTheWidth_AreRefused) {
  EXPECT_THROW(Gpt({.layers = 1, .width = 8, .heads = 3, .vocabulary = 5, .positions = 4}), InvalidInput);
}

TEST(Gpt, FlopsPerToken_AreThoseOfTheContract) {
  const Gpt gpt({.layers = 3, .width = 8, .heads = 2, .vocabulary = 5, .positions = 4});
  const double matmul_parameters = 3 * 12 * 64 + 5 * 8;
  EXPECT_DOUBLE_EQ(gpt.model_flops_per_token(4), 6 * matmul_parameters + 6 * 3 * 8 * 4);
}

}  // namespace
}  // namespace headroom::bench
