#pragma once

#include <headroom/allocator.hpp>
#include <headroom/kernels.hpp>
#include <headroom/parameters.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headroom::test {

/// A chain of linear layers with a quadratic loss: every unit equal, everything deterministic, any number of rows.
struct ToyOptions {
  int units = 4;
  std::int64_t width = 24, rows = 6;
  int micro_batches = 1;
  bool tied = false;         ///< Unit 0 is visited first and, again, last.
  bool frozen_bias = false;  ///< Of every unit but the first.
  std::uint64_t seed = 7;
  AdamWOptions adamw{.learning_rate = 1e-2};
  std::shared_ptr<const SchedulePolicy> policy = nullptr;
  ParameterOptions parameters = {};  ///< But for seed and micro-batches.
  GroupOptions groups = {};
};

class ToyModel {
 public:
  ToyModel(Job& job, const ToyOptions& options, const AllocatorOptions& memory_options = {})
      : ToyModel(job, options, memory_options, job.communicators(options.groups)) {}
  ToyModel(Job& job, const ToyOptions& options, const AllocatorOptions& memory_options, const Communicators& group)
      : options_(options),
        job_(job),
        memory(job.device(), memory_options),
        compute(job.device()),
        params(group, memory, compute, parameter_options(options)) {
    for (int i = 0; i < options.units; ++i) {
      params.add_unit(std::to_string(i), {{"weight", {options.width, options.width}, normal(0.2F)},
                                          {"bias", {options.width}, constant(0.1F), options.frozen_bias && i > 0}});
      path.push_back(i);
    }
    if (options.tied) {
      path.push_back(0);
      params.declare_path("default", path, {path.rbegin(), path.rend()});
    }
    if (options.policy != nullptr) {
      params.set_policy(options.policy);
    }
    adamw = std::make_unique<AdamW>(params, options.adamw);
  }

  /// The whole forward and backward of one step, `visit` called before each visit (tests fail there).
  template <class Visit>
  StepReport step(Visit visit) {
    StepTransaction step = params.begin_step({.path = path_name, .kind = path_kind, .data_cursor = cursor_});
    for (int micro = 0; micro < options_.micro_batches; ++micro) {
      std::vector<Buffer> activations;
      activations.push_back(input(micro));
      for (const int unit : path) {
        visit(Phase::forward, unit);
        UnitLease lease = step.forward(unit);
        activations.push_back(activation("activation"));
        {
          const Weights weights(*this, lease);
          kernels::linear_forward(view(activations[activations.size() - 2]), weights.weight, weights.bias,
                                  view(activations.back()), {compute, unit});
        }
        lease.finish();
      }
      Buffer gradient = loss(step, activations.back());
      for (std::size_t i = path.size(); i-- > 0;) {
        const int unit = path[i];
        visit(Phase::backward, unit);
        UnitLease lease = step.backward(unit);
        Buffer below = activation("activation gradient");
        {
          const Weights weights(*this, lease);
          const bool frozen = options_.frozen_bias && unit > 0;
          const Buffer unused = activation("gradient of a frozen bias");
          kernels::linear_backward(view(gradient), view(activations[i]), weights.weight, view(below),
                                   lease.gradient("weight"), frozen ? row(unused) : lease.gradient("bias"),
                                   {compute, unit});
        }
        lease.finish();
        gradient = std::move(below);
        activations.pop_back();
      }
    }
    StepReport report = step.commit(*adamw);
    ++cursor_;
    return report;
  }
  StepReport step() {
    return step([](Phase, int) {});
  }

  [[nodiscard]] Buffer activation(const char* name) {
    return memory.allocate({.bytes = static_cast<std::size_t>(options_.rows * options_.width) * sizeof(float),
                            .category = Category::activation,
                            .name = name},
                           compute);
  }
  [[nodiscard]] TensorView view(const Buffer& buffer) const {
    return buffer.tensor(DType::f32, {options_.rows, options_.width, 1, 1});
  }

 private:
  /// A lease's parameters as the kernels of the host want them.
  struct Weights {
    Weights(ToyModel& model, const UnitLease& lease)
        : weight(lease.parameter("weight")), bias(lease.parameter("bias")) {
      for (TensorView* view : {&weight, &bias}) {
        if (view->dtype == DType::bf16) {
          wide[view == &bias] = model.memory.allocate({.bytes = 2 * view->bytes(), .name = "widened"}, model.compute);
          const TensorView narrow = std::exchange(*view, wide[view == &bias].tensor(DType::f32, view->shape));
          kernels::cast(narrow, *view, model.compute);
        }
      }
    }
    TensorView weight, bias;
    std::array<Buffer, 2> wide;
  };

  static ParameterOptions parameter_options(const ToyOptions& options) {
    ParameterOptions parameters = options.parameters;
    parameters.seed = options.seed;
    parameters.micro_batches = options.micro_batches;
    return parameters;
  }
  [[nodiscard]] TensorView row(const Buffer& buffer) const {
    return buffer.tensor(DType::f32, {options_.width, 1, 1, 1});
  }

  /// Rows of the global batch: rank r takes the r-th part, so that a step does not depend on how many ranks share it
  /// beyond the order of sums.
  Buffer input(int micro) {
    Buffer buffer = activation("input");
    const auto first = (static_cast<std::int64_t>(cursor_) * options_.micro_batches + micro) * job_.world();
    kernels::fill_normal(
        view(buffer),
        {.key = 99, .stream = 1, .first_index = (first + job_.rank()) * options_.rows * options_.width, .stddev = 1},
        compute);
    return buffer;
  }

  /// Adds half the mean square of the output to the loss; returns its gradient.
  Buffer loss(const StepTransaction& step, const Buffer& output) {
    Buffer gradient = activation("loss gradient");
    Operation operation;
    operation.name = "toy_loss";
    operation.host =
        [to = view(gradient), from = view(output), sum = step.loss().as<double>(),
         scale = 1.0 / static_cast<double>(options_.rows * options_.width * options_.micro_batches * job_.world())] {
          for (std::int64_t i = 0; i < from.numel(); ++i) {
            const double value = static_cast<double>(from.as<float>()[i]);
            *sum += 0.5 * value * value * scale;
            to.as<float>()[i] = static_cast<float>(value * scale);
          }
        };
    compute.ref().enqueue(std::move(operation));
    return gradient;
  }

  ToyOptions options_;
  Job& job_;
  std::uint64_t cursor_ = 0;

 public:
  std::vector<int> path;  ///< Of the steps from now on: units in order of visit.
  std::string path_name = "default";
  Path path_kind = Path::fixed;
  CachingAllocator memory;
  Stream compute;
  ParameterManager params;
  std::unique_ptr<AdamW> adamw;
};

}  // namespace headroom::test
