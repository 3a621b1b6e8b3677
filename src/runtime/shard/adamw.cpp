#include <headroom/kernels.hpp>
#include <headroom/optimizer.hpp>

#include "runtime/shard/manager_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace headroom {

namespace {

void expect(bool holds, const char* option, double found, const char* expected) {
  if (!holds) {
    throw InvalidInput(fmt::format("AdamW: {}: expected {}, found {}", option, expected, found));
  }
}

void check(const AdamWOptions& options) {
  expect(std::isfinite(options.learning_rate) && options.learning_rate >= 0, "learning rate", options.learning_rate,
         "a finite number of at least 0");
  expect(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "a number in [0, 1)");
  expect(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "a number in [0, 1)");
  expect(std::isfinite(options.epsilon) && options.epsilon > 0, "epsilon", options.epsilon, "a positive number");
  expect(std::isfinite(options.weight_decay) && options.weight_decay >= 0, "weight decay", options.weight_decay,
         "a finite number of at least 0");
  expect(std::isfinite(options.clip_norm) && options.clip_norm >= 0, "clip norm", options.clip_norm,
         "a finite number of at least 0 (0: off)");
}

/// A stretch of a shard in which every parameter decays, or none does. The padding between parameters of one stretch is
/// zero with zero gradients, and an update leaves it so: fewer, longer ranges cost less.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  bool decay = false;
};

std::vector<Stretch> stretches(const FlatLayout& layout, int rank) {
  std::vector<Stretch> found;
  for (const FlatLayout::Range& range : layout.ranges(rank)) {
    const ParameterSpec& spec = layout.parameters[static_cast<std::size_t>(range.parameter)];
    if (spec.frozen) {
      continue;
    }
    const bool decay = spec.shape.size() >= 2;
    const std::int64_t end = range.shard_offset + range.numel;
    if (!found.empty() && found.back().decay == decay) {
      found.back().end = end;
    } else {
      found.push_back({range.shard_offset, end, decay});
    }
  }
  return found;
}

TensorView part(const Buffer& buffer, const Stretch& stretch) {
  return {buffer.data() + static_cast<std::size_t>(stretch.begin) * sizeof(float),
          DType::f32,
          {stretch.end - stretch.begin, 1, 1, 1}};
}

}  // namespace

AdamW::AdamW(ParameterManager& parameters, const AdamWOptions& options) : options_(options), owner_(parameters.state_) {
  check(options);
  const detail::ManagerState& state = *parameters.state_;
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    const detail::UnitState& unit = state.unit(i);
    const auto moment = [&](std::string_view name) {
      const std::int64_t numel = unit.layout.trainable.shard_numel;
      Buffer buffer = state.memory.allocate({.bytes = static_cast<std::size_t>(numel) * sizeof(float),
                                             .category = Category::optimizer_state,
                                             .name = name,
                                             .unit = i,
                                             .region = Region::residents},
                                            state.compute);
      kernels::fill(buffer.tensor(DType::f32, {numel, 1, 1, 1}), 0, {state.compute, i});
      return buffer;
    };
    moments_.push_back({moment("exp_avg"), moment("exp_avg_sq")});
  }
}

void AdamW::set_learning_rate(double learning_rate) {
  AdamWOptions changed = options_;
  changed.learning_rate = learning_rate;
  check(changed);
  options_ = changed;
}

std::string AdamW::describe() const {
  return fmt::format("AdamW {} {} {} {} {} {}", options_.learning_rate, options_.beta1, options_.beta2,
                     options_.epsilon, options_.weight_decay, options_.clip_norm);
}

void AdamW::check_made_for(const detail::ManagerState& state) const {
  if (owner_.get() != &state || moments_.size() != state.units.size()) {
    throw std::logic_error(fmt::format(
        "this AdamW holds moments for {} units of {} manager, the step has {} units: make it after the last "
        "add_unit, for the manager that it updates",
        moments_.size(), owner_.get() == &state ? "this" : "another", state.units.size()));
  }
}

void AdamW::apply(const detail::ManagerState& state) const noexcept {
  const kernels::AdamWHyperparameters options{options_.learning_rate, options_.beta1,        options_.beta2,
                                              options_.epsilon,       options_.weight_decay, options_.clip_norm};
  const TensorView scalars = state.scalars_view(0, 4);
  kernels::advance_step(scalars, state.compute);
  for (int i = 0; i < static_cast<int>(state.units.size()); ++i) {
    const detail::UnitState& unit = state.unit(i);
    const Moments& moments = moments_[static_cast<std::size_t>(i)];
    for (const Stretch& stretch : stretches(unit.layout, state.shard_rank)) {
      kernels::adamw(part(unit.shard, stretch), part(unit.gradient_shard, stretch), part(moments.first, stretch),
                     part(moments.second, stretch), scalars, options, stretch.decay, {state.compute, i});
    }
  }
}

}  // namespace headroom
