// A whole model's gradient against finite differences of its loss, one parameter tensor at a time.
#include "io/hf_gpt2.hpp"
#include "workloads/chain.hpp"
#include "workloads/gpt.hpp"

#include <headroom/communicator.hpp>
#include <headroom/optimizer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <span>

namespace headroom::bench {
namespace {

constexpr ModelShape kShape{2, 8, 2, 11, 6};
constexpr BatchShape kBatch{3, 6};

/// A model whose every parameter the test knows.
class Model {
 public:
  Model(const Job& job, std::unique_ptr<Workload> workload, int branch)
      : memory_(job.device()),
        compute_(job.device()),
        tensors_(memory_, compute_),
        workload_(std::move(workload)),
        branch_(branch),
        parameters_(job.communicators(), memory_, compute_.ref()) {
    add_units(*workload_, parameters_);
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
      tokens.view.as<std::int32_t>()[i] = static_cast<std::int32_t>((i * 5 + 2) % kShape.vocab);
      targets.view.as<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7 + 1) % kShape.vocab);
    }
    const std::vector<PathSpec> paths = workload_->paths();
    StepTransaction step = parameters_.begin_step(
        paths.empty() ? StepOptions{} : StepOptions{.path = paths[static_cast<std::size_t>(branch_)].name});
    workload_->run(step, {kBatch, tokens.view, targets.view, 1.0 / static_cast<double>(kBatch.tokens()), branch_},
                   tensors_);
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
  std::unique_ptr<Workload> workload_;
  int branch_;
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
  constexpr double kStep = 3e-3;
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

/// A way to make a model, and what of it the gradient must leave alone.
struct Case {
  const char* name;
  std::function<std::unique_ptr<Workload>()> make;
  int branch = 0;
  const char* unvisited = "";  ///< A unit that the branch leaves out.
};

std::unique_ptr<Workload> gpt(const Wrap& wrap, Recompute recompute = Recompute::none) {
  return std::make_unique<Gpt>(kShape, wrap, recompute);
}

std::unique_ptr<Workload> branching() {
  return std::make_unique<Branching>(kShape, kBatch.sequence, Branches::known, Recompute::none);
}

class WorkloadGradient : public testing::TestWithParam<Case> {};

TEST_P(WorkloadGradient, OfEveryTensor_EqualsFiniteDifferences) {
  run_ranks(1, {}, {}, [](Job& job) {
    Model model(job, GetParam().make(), GetParam().branch);
    const auto gradients = model.first_gradient();
    for (std::size_t unit = 0; unit < gradients.size(); ++unit) {
      const FlatLayout& layout = model.parameters().layout(static_cast<int>(unit));
      for (std::size_t index = 0; index < gradients[unit].size(); ++index) {
        const ParameterSpec& spec = layout.parameters[index];
        const std::string name = layout.unit + "." + spec.name;
        if (spec.frozen || layout.unit == GetParam().unvisited) {
          EXPECT_EQ(norm(gradients[unit][index]), 0) << name;
        } else {
          check_tensor(model, model.values()[unit][index], gradients[unit][index], name.c_str());
        }
      }
    }
    model.parameters().finish();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, WorkloadGradient,
    testing::Values(Case{"gpt", [] { return gpt({}); }}, Case{"gpt_half", [] { return gpt({Wrap::Kind::half}); }},
                    Case{"gpt_2_recompute",
                         [] {
                           return gpt({Wrap::Kind::blocks, 2}, Recompute::unit);
                         }},
                    Case{"irregular", [] { return std::make_unique<Irregular>(kShape, Recompute::none); }},
                    Case{"irregular_recompute", [] { return std::make_unique<Irregular>(kShape, Recompute::unit); }},
                    Case{"branching_even", branching, 0, "b"}, Case{"branching_odd", branching, 1, "a"}),
    [](const testing::TestParamInfo<Case>& tested) { return std::string(tested.param.name); });

TEST(Gpt, Units_HaveHuggingFaceNamesAndShapes) {
  for (const Wrap& wrap : {Wrap{}, Wrap{Wrap::Kind::half}, Wrap{Wrap::Kind::blocks, 2}}) {
    const std::vector<UnitSpec> units = Gpt(kShape, wrap).units();
    const std::vector<Gpt2Unit> expected = gpt2_units(kShape, wrap);
    ASSERT_EQ(units.size(), expected.size());
    for (std::size_t unit = 0; unit < expected.size(); ++unit) {
      EXPECT_EQ(units[unit].name, expected[unit].name);
      ASSERT_EQ(units[unit].parameters.size(), expected[unit].tensors.size());
      for (std::size_t index = 0; index < expected[unit].tensors.size(); ++index) {
        EXPECT_EQ(units[unit].parameters[index].name, expected[unit].tensors[index].name);
        EXPECT_EQ(units[unit].parameters[index].shape, expected[unit].tensors[index].shape);
      }
    }
  }
}

TEST(Gpt, HeadsThatDoNotDivideTheWidth_AreRefused) { EXPECT_THROW(Gpt({1, 8, 3, 5, 4}), InvalidInput); }

TEST(Gpt, FlopsPerToken_AreThoseOfTheContract) {
  const double matmul_parameters = 3 * 12 * 64 + 5 * 8;
  EXPECT_DOUBLE_EQ(Gpt({3, 8, 2, 5, 4}).model_flops_per_token(4), 6 * matmul_parameters + 6 * 3 * 8 * 4);
}

/// The products that backward repeats (logits; with recompute, hidden layers) are no work of the model.
TEST(Chain, MatrixProducts_AreTheModelsFlopsAndTheRepeatedOnes) {
  const Irregular irregular(kShape, Recompute::unit);
  double flops = 0;
  for (const GemmCall& call : irregular.gemm_calls(kBatch)) flops += call.flops();
  const double width = 8;
  const double repeated = 2 * (width * 11 + width * 128 + 2 * width * 4);
  const double gains = 2 * 6 * width;
  EXPECT_DOUBLE_EQ(flops / static_cast<double>(kBatch.tokens()),
                   irregular.model_flops_per_token(kBatch.sequence) + repeated + gains);
  // Six for each parameter of the MLPs and the head, four for the frozen projection.
  EXPECT_DOUBLE_EQ(irregular.model_flops_per_token(kBatch.sequence),
                   6 * (2 * width * 128 + 2 * 2 * width * 4 + width * 11) + 4 * width * width);
  const Branching branching(kShape, kBatch.sequence, Branches::known, Recompute::none);
  EXPECT_DOUBLE_EQ(branching.model_flops_per_token(kBatch.sequence),
                   6 * (2 * 2 * width * 32 + 2 * width * (64 + 16) / 2 + width * 11));
}

}  // namespace
}  // namespace headroom::bench
