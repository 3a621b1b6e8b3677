#include "kernels/host.hpp"
#include "tensors.hpp"

#include <limits>

namespace headroom::kernels::testing {
namespace {

struct Sizes {
  std::int64_t batch, heads, sequence, head_dim;
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t rows() const { return batch * sequence; }
};

/// Softmax attention with the whole T x T matrix, one head of one sequence at a time.
class Reference {
 public:
  Reference(const Sizes& sizes, const Doubles& qkv) : sizes_(sizes), qkv_(qkv) {}

  void forward(Doubles& out, Doubles& lse) const {
    out.assign(static_cast<std::size_t>(sizes_.rows() * sizes_.width()), 0);
    lse.clear();
    for_each_query([&](std::int64_t batch, std::int64_t head, std::int64_t query) {
      const Doubles scores = scores_of(batch, head, query);
      double sum = 0;
      for (const double score : scores) sum += std::exp(score);
      lse.push_back(std::log(sum));
      for (std::int64_t key = 0; key <= query; ++key) {
        const double probability = std::exp(scores[static_cast<std::size_t>(key)]) / sum;
        for (std::int64_t i = 0; i < sizes_.head_dim; ++i) {
          out[out_at(batch, head, query, i)] += probability * qkv_[at(2, batch, head, key, i)];
        }
      }
    });
  }

  Doubles backward(const Doubles& dout) const {
    Doubles out, lse, dqkv(qkv_.size());
    forward(out, lse);
    std::size_t row = 0;
    for_each_query([&](std::int64_t batch, std::int64_t head, std::int64_t query) {
      const Doubles scores = scores_of(batch, head, query);
      double delta = 0;
      for (std::int64_t i = 0; i < sizes_.head_dim; ++i) {
        delta += dout[out_at(batch, head, query, i)] * out[out_at(batch, head, query, i)];
      }
      for (std::int64_t key = 0; key <= query; ++key) {
        const double probability = std::exp(scores[static_cast<std::size_t>(key)] - lse[row]);
        double slope = -delta;
        for (std::int64_t i = 0; i < sizes_.head_dim; ++i) {
          slope += dout[out_at(batch, head, query, i)] * qkv_[at(2, batch, head, key, i)];
          dqkv[at(2, batch, head, key, i)] += probability * dout[out_at(batch, head, query, i)];
        }
        for (std::int64_t i = 0; i < sizes_.head_dim; ++i) {
          const double common = probability * slope / std::sqrt(static_cast<double>(sizes_.head_dim));
          dqkv[at(0, batch, head, query, i)] += common * qkv_[at(1, batch, head, key, i)];
          dqkv[at(1, batch, head, key, i)] += common * qkv_[at(0, batch, head, query, i)];
        }
      }
      ++row;
    });
    return dqkv;
  }

 private:
  template <class Body>
  void for_each_query(const Body& body) const {
    for (std::int64_t batch = 0; batch < sizes_.batch; ++batch) {
      for (std::int64_t head = 0; head < sizes_.heads; ++head) {
        for (std::int64_t query = 0; query < sizes_.sequence; ++query) body(batch, head, query);
      }
    }
  }
  Doubles scores_of(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    Doubles scores;
    for (std::int64_t key = 0; key <= query; ++key) {
      double sum = 0;
      for (std::int64_t i = 0; i < sizes_.head_dim; ++i) {
        sum += qkv_[at(0, batch, head, query, i)] * qkv_[at(1, batch, head, key, i)];
      }
      scores.push_back(sum / std::sqrt(static_cast<double>(sizes_.head_dim)));
    }
    return scores;
  }
  /// part: 0 q, 1 k, 2 v.
  std::size_t at(std::int64_t part, std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t i) const {
    return static_cast<std::size_t>(((batch * sizes_.sequence + row) * 3 + part) * sizes_.width() +
                                    head * sizes_.head_dim + i);
  }
  std::size_t out_at(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t i) const {
    return static_cast<std::size_t>((batch * sizes_.sequence + row) * sizes_.width() + head * sizes_.head_dim + i);
  }
  const Sizes& sizes_;
  const Doubles& qkv_;
};

class Attention : public KernelTest {
 protected:
  struct Tensors {
    Floats qkv, dout, out, lse, dqkv;
  };
  static Tensors make(const Sizes& sizes, float scale) {
    Random random(static_cast<unsigned>(sizes.sequence * 100 + sizes.head_dim));
    return {random.floats({sizes.rows(), 3 * sizes.width()}, scale), random.floats({sizes.rows(), sizes.width()}),
            Floats({sizes.rows(), sizes.width()}, std::nanf("")), Floats({sizes.batch, sizes.heads, sizes.sequence}),
            Floats({sizes.rows(), 3 * sizes.width()}, std::nanf(""))};
  }
  static void compare(const Sizes& sizes, const Tensors& tensors, double tolerance) {
    SCOPED_TRACE(::testing::Message() << "B " << sizes.batch << " H " << sizes.heads << " T " << sizes.sequence << " D "
                                      << sizes.head_dim);
    const Doubles qkv = tensors.qkv.doubles();
    const Reference reference(sizes, qkv);
    Doubles out, lse;
    reference.forward(out, lse);
    expect_close(tensors.out, out, tolerance, "out");
    expect_close(tensors.lse, lse, tolerance, "lse");
    expect_close(tensors.dqkv, reference.backward(tensors.dout.doubles()), 2 * tolerance, "dqkv");
  }
  void check(const Sizes& sizes, float scale = 1, double tolerance = 5e-6) {
    Tensors tensors = make(sizes, scale);
    Floats workspace = workspace_of(attention_workspace_bytes(sizes.sequence, sizes.head_dim));
    attention_forward(tensors.qkv, tensors.out, tensors.lse, workspace, stream);
    attention_backward(tensors.dout, tensors.qkv, tensors.out, tensors.lse, tensors.dqkv, workspace, stream);
    finish();
    compare(sizes, tensors, tolerance);
  }
};

TEST_F(Attention, Reference_EqualsFiniteDifferences) {
  const Sizes sizes{2, 2, 4, 3};
  Random random(8);
  Doubles qkv = random.floats({sizes.rows(), 3 * sizes.width()}).doubles();
  const Doubles dout = random.floats({sizes.rows(), sizes.width()}).doubles();
  const Reference reference(sizes, qkv);
  const Doubles expected = reference.backward(dout);
  const auto loss = [&] {
    Doubles out, lse;
    reference.forward(out, lse);
    return weighted(dout, out);
  };
  expect_close(finite_differences(qkv, loss), expected, 1e-7, "dqkv");
}

TEST_F(Attention, EveryHeadDimensionAndBatch_EqualsReference) {
  check({1, 1, 1, 1});
  check({1, 2, 5, 16});
  check({2, 3, 33, 64});
  check({3, 1, 64, 80});
  check({1, 2, 17, 5});
}

TEST_F(Attention, SequencesBeyondOneTile_EqualReference) {
  check({1, 2, 65, 16});
  check({2, 1, 256, 16});
  check({1, 1, 301, 64});
  check({1, 1, 577, 8});
}

TEST_F(Attention, LargeScores_StayFiniteAndEqualReference) { check({1, 2, 130, 16}, 6, 5e-5); }

TEST_F(Attention, SmallTiles_EqualReferenceOverManyKeyTiles) {
  const Sizes sizes{2, 2, 29, 6};
  host::Attention shape{sizes.batch, sizes.heads, sizes.sequence, sizes.head_dim, 3, 6};
  Tensors tensors = make(sizes, 1);
  std::vector<float> workspace(static_cast<std::size_t>(shape.workspace_numel()), std::nanf(""));
  host::attention_forward(shape, tensors.qkv.values.data(), tensors.out.values.data(), tensors.lse.values.data(),
                          workspace.data());
  host::attention_backward(
      shape,
      {tensors.dout.values.data(), tensors.qkv.values.data(), tensors.out.values.data(), tensors.lse.values.data()},
      tensors.dqkv.values.data(), workspace.data());
  compare(sizes, tensors, 5e-6);
}

TEST_F(Attention, LaterTokens_ChangeNothingBefore) {
  const Sizes sizes{1, 2, 80, 8};
  Tensors first = make(sizes, 1), second = make(sizes, 1);
  constexpr std::size_t kFrom = 50;
  const auto row_numel = static_cast<std::size_t>(3 * sizes.width());
  for (std::size_t i = kFrom * row_numel; i < second.qkv.values.size(); ++i) second.qkv.values[i] = 1e3F;
  Floats workspace = workspace_of(attention_workspace_bytes(sizes.sequence, sizes.head_dim));
  attention_forward(first.qkv, first.out, first.lse, workspace, stream);
  attention_forward(second.qkv, second.out, second.lse, workspace, stream);
  finish();
  const auto unchanged = static_cast<std::ptrdiff_t>(kFrom * row_numel / 3);
  EXPECT_EQ(std::vector<float>(first.out.values.begin(), first.out.values.begin() + unchanged),
            std::vector<float>(second.out.values.begin(), second.out.values.begin() + unchanged));
}

TEST_F(Attention, NotANumberInAQuery_ReachesItsRowOnly) {
  const Sizes sizes{1, 1, 70, 16};
  Tensors tensors = make(sizes, 1);
  tensors.qkv.values[20 * 48] = std::nanf("");
  Floats workspace = workspace_of(attention_workspace_bytes(sizes.sequence, sizes.head_dim));
  attention_forward(tensors.qkv, tensors.out, tensors.lse, workspace, stream);
  finish();
  EXPECT_TRUE(std::isnan(tensors.out.values[20 * 16]));
  EXPECT_FALSE(std::isnan(tensors.out.values[19 * 16]));
  EXPECT_FALSE(std::isnan(tensors.out.values[21 * 16]));
}

}  // namespace
}  // namespace headroom::kernels::testing
