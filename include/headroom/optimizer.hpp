#pragma once

#include <headroom/allocator.hpp>

#include <memory>
#include <string>
#include <vector>

namespace headroom {

class ParameterManager;
namespace detail {
struct ManagerState;
}

struct AdamWOptions {
  double learning_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;  ///< Decoupled; on parameters of two or more dimensions.
  double clip_norm = 1.0;     ///< Of the global gradient norm; 0: off.
};

/// AdamW (Loshchilov and Hutter 2019; torch.optim.AdamW's arithmetic) over the shards of one manager. The moments are
/// allocated, and zeroed, at construction: after the last add_unit. Throws: OutOfMemory; InvalidInput on an option.
class AdamW {
 public:
  explicit AdamW(ParameterManager& parameters, const AdamWOptions& options = {});

  [[nodiscard]] const AdamWOptions& options() const noexcept { return options_; }
  /// Takes effect at the next commit. Throws: InvalidInput.
  void set_learning_rate(double learning_rate);

 private:
  friend class StepTransaction;
  struct Moments {
    Buffer first, second;  ///< exp_avg, exp_avg_sq: [shard_numel], f32.
  };
  /// Order: enqueues the update of every shard on compute. Allocates nothing, communicates nothing, does not throw.
  void apply(const detail::ManagerState& state) const noexcept;

  /// Options as text: what ranks must agree on.
  [[nodiscard]] std::string describe() const;
  /// Throws: std::logic_error where it was made for another manager, or before the last add_unit.
  void check_made_for(const detail::ManagerState& state) const;

  AdamWOptions options_;
  std::shared_ptr<const detail::ManagerState> owner_;
  std::vector<Moments> moments_;
};

}  // namespace headroom
